import type { ServiceSchema } from 'moleculer';
import { unknownHosts } from '../../contract/resources/unknown-hosts.ts';
import { PUBLISHING } from '../../mixins/belongings.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { getUnknownHosts, setUnknownHosts } from './unknown-hosts.ts';

export const roles: Role[] = ['app'];
export const belongings = PUBLISHING;

export default (runtime: Runtime): ServiceSchema => ({
  name: 'unknown-hosts',
  mixins: [
    contractService([
      implement(unknownHosts.get, (input) => getUnknownHosts(runtime, input)),
      implement(unknownHosts.set, (input, call) => setUnknownHosts(runtime, input, call)),
    ]),
  ],
});
