import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  REGION_NOT_FOUND: entry(404, 'There is no such region.'),
  REGION_CODE_TAKEN: entry(409, 'Another region has this code.'),
  REGION_IN_USE: entry(409, 'The region is still in use.'),
} satisfies ErrorEntries;
