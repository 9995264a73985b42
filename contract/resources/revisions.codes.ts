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
} satisfies ErrorEntries;

export const attention = {
  publications_waiting: { order: 90, level: 'act', page: '/clusters' },
} satisfies AttentionEntries;

export const reasons = {
  rollback: 'Rolled back to an earlier revision.',
  change_undone: 'A change was undone automatically because client errors rose.',
  rollout_promoted: 'Canary promoted: all nodes run the candidate.',
  rollout_rollback: 'Canary ended: its nodes run the stable revision again.',
} satisfies ReasonEntries;
