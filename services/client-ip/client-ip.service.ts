import type { ServiceSchema } from 'moleculer';
import { clientIp } from '../../contract/resources/client-ip.ts';
import { PUBLISHING } from '../../mixins/belongings.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { getClientIp, setClientIp } from './client-ip.ts';

export const roles: Role[] = ['app'];
export const belongings = PUBLISHING;

export default (runtime: Runtime): ServiceSchema => ({
  name: 'client-ip',
  mixins: [
    contractService([
      implement(clientIp.get, (input) => getClientIp(runtime, input)),
      implement(clientIp.set, (input, call) => setClientIp(runtime, input, call)),
    ]),
  ],
});
