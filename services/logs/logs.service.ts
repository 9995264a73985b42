import type { Context, ServiceSchema } from 'moleculer';
import { logSettings } from '../../contract/resources/log-settings.ts';
import type { logTail } from '../../contract/resources/log-tail.ts';
import { logs } from '../../contract/resources/logs.ts';
import { siteLogs } from '../../contract/resources/site-logs.ts';
import type { StreamInput } from '../../contract/stream.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import { repeatable } from '../../mixins/repeatable.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { exportLogs, startLogExport } from './export.ts';
import { getPlatformLogs, setPlatformLogs } from './log-settings.ts';
import { logHistogram, queryLogs, topLogs } from './query.ts';
import { readTailSearch } from './search.ts';
import { getLogSettings, setLogSettings } from './settings.ts';

export const roles: Role[] = ['app'];

export default (runtime: Runtime): ServiceSchema => ({
  name: 'logs',
  actions: {
    // For gateways: what a tail looks for, checked.
    'logs.tailSearch': repeatable(({ params }: Context<StreamInput<typeof logTail.tail>>) =>
      readTailSearch(runtime, params),
    ),
  },
  mixins: [
    contractService([
      implement(siteLogs.get, (input) => getLogSettings(runtime, input)),
      implement(siteLogs.set, (input, call) => setLogSettings(runtime, input, call)),
      implement(logs.query, (input) => queryLogs(runtime, input)),
      implement(logs.histogram, (input) => logHistogram(runtime, input)),
      implement(logs.top, (input) => topLogs(runtime, input)),
      implement(logs.export, (input) => exportLogs(runtime, input)),
      implement(logs.startExport, (input, call) => startLogExport(runtime, input, call)),
      implement(logSettings.get, () => getPlatformLogs(runtime)),
      implement(logSettings.set, (input, call) => setPlatformLogs(runtime, input, call)),
    ]),
  ],
});
