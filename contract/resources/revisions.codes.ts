import type { AttentionEntries } from '../attention-entry.ts';
import { type ErrorEntries, entry } from '../error-entry.ts';
import type { ReasonEntries } from '../reason-entry.ts';

export const errors = {
  REVISION_NOT_FOUND: entry(404, 'The cluster has no such revision, or does not keep it any more.'),
  ROLLBACK_RESOURCE_UNAVAILABLE: entry(
    409,
    'The revision needs something that is gone or belongs to another now; see data.resources.',
  ),
  ROLLBACK_TOO_LARGE: entry(409, 'More entries changed since the revision than a rollback puts back at once.'),
} satisfies ErrorEntries;

export const attention = {
  publications_waiting: { order: 90, level: 'act', page: '/clusters' },
} satisfies AttentionEntries;

export const reasons = {
  rollback: 'Rolled back to an earlier revision.',
  change_undone: 'A change was taken back by itself, because visitors suffered.',
  rollout_promoted: 'Canary promoted: everybody gets what it tried.',
  rollout_rollback: 'Canary ended: its nodes get again what everybody runs.',
} satisfies ReasonEntries;
