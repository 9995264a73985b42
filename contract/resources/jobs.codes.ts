import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  JOB_NOT_FOUND: entry(404, 'This job does not exist. Jobs are kept for 7 days.'),
  JOB_FINISHED: entry(409, 'The job has ended and cannot be canceled.'),
  JOB_FILE_UNAVAILABLE: entry(409, 'The job has no file: it is not done, it failed, or its file has expired.'),
  JOB_LIMIT: entry(
    429,
    'Too many jobs: a user may have `data.limit` open ones, and the console keeps `data.kept` files and 2 GiB. Retry later.',
  ),
} satisfies ErrorEntries;
