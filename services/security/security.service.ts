import type { ServiceSchema } from 'moleculer';
import { security } from '../../contract/resources/security.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { listIncidents } from './incidents.ts';
import { listSecurityEvents, securityState } from './security.ts';

export const roles: Role[] = ['app'];

export default (runtime: Runtime): ServiceSchema => ({
  name: 'security',
  mixins: [
    contractService([
      implement(security.state, (input) => securityState(runtime, input)),
      implement(security.events, (input) => listSecurityEvents(runtime, input)),
      implement(security.incidents, (input) => listIncidents(runtime, input)),
    ]),
  ],
});
