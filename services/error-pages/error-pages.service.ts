import type { ServiceSchema } from 'moleculer';
import { errorPages, platformPages } from '../../contract/resources/error-pages.ts';
import { maintenance } from '../../contract/resources/maintenance.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { getMaintenance, updateMaintenance } from './maintenance.ts';
import { getPlatformPages, setPlatformPages } from './platform-pages.ts';
import { getErrorPages, updateErrorPages } from './site-pages.ts';

export const roles: Role[] = ['app'];

export default (runtime: Runtime): ServiceSchema => ({
  name: 'error-pages',
  mixins: [
    contractService([
      implement(errorPages.get, (input) => getErrorPages(runtime, input)),
      implement(errorPages.update, (input, call) => updateErrorPages(runtime, input, call)),
      implement(maintenance.get, (input) => getMaintenance(runtime, input)),
      implement(maintenance.update, (input, call) => updateMaintenance(runtime, input, call)),
      implement(platformPages.get, () => getPlatformPages(runtime)),
      implement(platformPages.set, (input, call) => setPlatformPages(runtime, input, call)),
    ]),
  ],
});
