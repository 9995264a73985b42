import type { ServiceSchema } from 'moleculer';
import { usage, usageSettings } from '../../contract/resources/usage.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { listUsage, listUsageChanges } from './list.ts';
import { getUsageSettings, setUsageSettings } from './settings.ts';

export const roles: Role[] = ['app'];

export default (runtime: Runtime): ServiceSchema => ({
  name: 'usage',
  mixins: [
    contractService([
      implement(usage.list, (input) => listUsage(runtime, input)),
      implement(usage.changes, (input) => listUsageChanges(runtime, input)),
      implement(usageSettings.get, () => getUsageSettings(runtime)),
      implement(usageSettings.set, (input, call) => setUsageSettings(runtime, input, call)),
    ]),
  ],
});
