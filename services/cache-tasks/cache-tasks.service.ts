import type { ServiceSchema } from 'moleculer';
import { cacheTasks, sitePurge } from '../../contract/resources/cache-tasks.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { createCacheTask, purgeSite } from './create-task.ts';
import { getCacheTask, listCacheTasks } from './list-tasks.ts';

export const roles: Role[] = ['app'];
export const belongings = ['relay', 'purge-fanout'];

export default (runtime: Runtime): ServiceSchema => ({
  name: 'cache-tasks',
  mixins: [
    contractService([
      implement(cacheTasks.list, (input) => listCacheTasks(runtime, input)),
      implement(cacheTasks.get, (input) => getCacheTask(runtime, input)),
      implement(cacheTasks.create, (input, call) => createCacheTask(runtime, input, call)),
      implement(sitePurge.purgeAll, (input, call) => purgeSite(runtime, input, call)),
    ]),
  ],
});
