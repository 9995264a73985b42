import type { ServiceSchema } from 'moleculer';
import { headerLimit } from '../../contract/resources/header-limit.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { getHeaderLimit, setHeaderLimit } from './header-limit.ts';

export const roles: Role[] = ['app'];

export default (runtime: Runtime): ServiceSchema => ({
  name: 'header-limit',
  mixins: [
    contractService([
      implement(headerLimit.get, (input) => getHeaderLimit(runtime, input)),
      implement(headerLimit.set, (input, call) => setHeaderLimit(runtime, input, call)),
    ]),
  ],
});
