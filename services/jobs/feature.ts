import type { ServiceFeature } from '../../mixins/service-feature.ts';
import { MINUTE_MS, SECOND_MS, sweep } from '../../mixins/sweep.ts';
import { purgeLongJobs } from '../../models/jobs/long-job.ts';
import { LONG_JOBS } from '../gen/long-jobs.ts';
import { workOnJobs } from './work.ts';

export const feature = {
  jobs: [
    {
      name: 'work-on-long-jobs',
      everyMs: SECOND_MS,
      run: (runtime, signal) => workOnJobs(runtime, LONG_JOBS, signal),
    },
    sweep('purge-long-jobs', 10 * MINUTE_MS, purgeLongJobs),
  ],
} satisfies ServiceFeature;
