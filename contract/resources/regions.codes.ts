import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  REGION_NOT_FOUND: entry(404, 'This region does not exist.'),
  REGION_CODE_TAKEN: entry(409, 'Another region already has this `code`. Choose another one.'),
  REGION_IN_USE: entry(409, 'The region is still in use.'),
} satisfies ErrorEntries;
