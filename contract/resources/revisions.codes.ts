import type { AttentionEntries } from '../attention-entry.ts';
import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  REVISION_NOT_FOUND: entry(404, 'The cluster has no such revision.'),
} satisfies ErrorEntries;

export const attention = {
  publications_waiting: { order: 90, level: 'act', page: '/clusters' },
} satisfies AttentionEntries;
