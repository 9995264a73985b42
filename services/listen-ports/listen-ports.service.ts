import type { ServiceSchema } from 'moleculer';
import { listenPorts } from '../../contract/resources/listen-ports.ts';
import { PUBLISHING } from '../../mixins/belongings.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { getListenPorts, setListenPorts } from './listen-ports.ts';

export const roles: Role[] = ['app'];
export const belongings = PUBLISHING;

export default (runtime: Runtime): ServiceSchema => ({
  name: 'listen-ports',
  mixins: [
    contractService([
      implement(listenPorts.get, (input) => getListenPorts(runtime, input)),
      implement(listenPorts.set, (input, call) => setListenPorts(runtime, input, call)),
    ]),
  ],
});
