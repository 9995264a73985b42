import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  NODE_NOT_FOUND: entry(404, 'There is no such node.'),
} satisfies ErrorEntries;
