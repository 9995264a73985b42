import type { ServiceSchema } from 'moleculer';
import { nodeChannelSettings } from '../../contract/resources/node-channel-settings.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { NodeChannelChecks } from './check.ts';
import { getNodeChannelSettings, setNodeChannelSettings } from './settings.ts';

export const roles: Role[] = ['app'];

export default (runtime: Runtime): ServiceSchema => {
  const checks = new NodeChannelChecks(runtime);
  return {
    name: 'node-channel-settings',
    mixins: [
      contractService([
        implement(nodeChannelSettings.get, () => getNodeChannelSettings(runtime)),
        implement(nodeChannelSettings.set, (input, call) => setNodeChannelSettings(runtime, input, call)),
        implement(nodeChannelSettings.check, () => checks.check()),
      ]),
    ],
  };
};
