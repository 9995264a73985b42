import type { ServiceSchema } from 'moleculer';
import { jobs } from '../../contract/resources/jobs.ts';
import { contractService, implement, implementPieces } from '../../mixins/contract-service.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { cancelJob, getJob, jobFile, listJobs } from './jobs.ts';

export const roles: Role[] = ['app'];

export default (runtime: Runtime): ServiceSchema => ({
  name: 'jobs',
  mixins: [
    contractService([
      implement(jobs.list, (input) => listJobs(runtime, input)),
      implement(jobs.get, (input) => getJob(runtime, input)),
      implement(jobs.cancel, (input, call) => cancelJob(runtime, input, call)),
      implementPieces(jobs.file, (input, _, after) => jobFile(runtime, input, after)),
    ]),
  ],
});
