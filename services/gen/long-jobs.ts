// Written by `npm run generate` from the files it imports. Changes here are lost.
import { usageExportJob } from '../usage/usage-export.job.ts';

export const LONG_JOBS = [
  usageExportJob,
] as const;
