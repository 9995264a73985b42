// Written by `npm run generate` from the files it imports. Changes here are lost.
import { logExportJob } from '../logs/log-export.job.ts';
import { usageExportJob } from '../usage/usage-export.job.ts';

export const LONG_JOBS = [
  logExportJob,
  usageExportJob,
] as const;
