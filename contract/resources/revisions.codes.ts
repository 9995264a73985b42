import type { AttentionEntries } from '../attention-entry.ts';
import { type ErrorEntries, entry } from '../error-entry.ts';
import type { ReasonEntries } from '../reason-entry.ts';

export const errors = {
  REVISION_NOT_FOUND: entry(404, 'This revision does not exist in the cluster or is no longer kept.'),
  ROLLBACK_RESOURCE_UNAVAILABLE: entry(
    409,
    'The revision needs resources that were deleted or moved; see `data.resources`. Restore them, or ' +
      'choose a newer revision.',
  ),
  ROLLBACK_TOO_LARGE: entry(
    409,
    'More than `data.limit` entries changed since this revision, too many for one rollback. Choose a ' +
      'newer revision.',
  ),
  UNDO_UNAVAILABLE: entry(
    409,
    'This revision cannot be undone, because it changed no settings of existing sites or clusters. Use a rollback.',
  ),
  UNDO_CHANGED_LATER: entry(
    409,
    'A later change affects the same fields; see `data.fields`. Undo that change first, or change the settings directly.',
  ),
} satisfies ErrorEntries;

export const attention = {
  publications_waiting: { order: 90, level: 'act', page: '/clusters' },
} satisfies AttentionEntries;

export const reasons = {
  rollback: 'Rolled back to an earlier revision.',
  change_undone: 'A change was undone automatically because client errors rose.',
  revision_undone: 'A change was undone.',
  settings_republished: 'Saved settings that no node ran were published.',
  unpublished_discarded: 'Saved settings that no node ran were discarded.',
  rollout_promoted: 'Canary promoted: all nodes run the candidate.',
  rollout_rollback: 'Canary ended: its nodes run the stable revision again.',
} satisfies ReasonEntries;
