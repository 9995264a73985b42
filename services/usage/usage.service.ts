import type { ServiceSchema } from 'moleculer';
import { usage, usageSettings } from '../../contract/resources/usage.ts';
import { contractService, implement, implementPieces } from '../../mixins/contract-service.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { exportUsage } from './export.ts';
import { listUsage, listUsageChanges } from './list.ts';
import { getUsageSettings, setUsageSettings } from './settings.ts';
import { startUsageExport } from './start-export.ts';
import { listUsageGaps, listUsageSites, usageSummary } from './summary.ts';

export const roles: Role[] = ['app'];

export default (runtime: Runtime): ServiceSchema => ({
  name: 'usage',
  mixins: [
    contractService([
      implement(usage.list, (input) => listUsage(runtime, input)),
      implement(usage.changes, (input) => listUsageChanges(runtime, input)),
      implement(usage.summary, (input) => usageSummary(runtime, input)),
      implement(usage.sites, (input) => listUsageSites(runtime, input)),
      implement(usage.gaps, (input) => listUsageGaps(runtime, input)),
      implementPieces(usage.export, (input, _, after) => exportUsage(runtime, input, after)),
      implement(usage.startExport, (input, call) => startUsageExport(runtime, input, call)),
      implement(usageSettings.get, () => getUsageSettings(runtime)),
      implement(usageSettings.set, (input, call) => setUsageSettings(runtime, input, call)),
    ]),
  ],
});
