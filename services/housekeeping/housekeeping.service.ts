// Jobs that end things by age, and finish platform-wide publications; one process of all runs each.
import type { ServiceSchema } from 'moleculer';
import { leaderJobs } from '../../mixins/leader-jobs.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { JOBS } from './jobs.ts';

export const roles: readonly Role[] = ['worker'];
export const pools = { api: 10, jobs: 4, bans: 3, channel: 2 };

export default (runtime: Runtime): ServiceSchema => ({ name: 'housekeeping', mixins: [leaderJobs(runtime, JOBS)] });
