import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  REVISION_NOT_FOUND: entry(404, 'The cluster has no such revision.'),
} satisfies ErrorEntries;
