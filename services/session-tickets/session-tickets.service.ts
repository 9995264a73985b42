import type { ServiceSchema } from 'moleculer';
import { sessionTicketKeys } from '../../contract/resources/session-ticket-keys.ts';
import { PUBLISHING } from '../../mixins/belongings.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { rotateSessionTicketKeys } from './rotate.ts';

export const roles: Role[] = ['app'];
export const belongings = PUBLISHING;

export default (runtime: Runtime): ServiceSchema => ({
  name: 'session-tickets',
  mixins: [
    contractService([
      implement(sessionTicketKeys.rotate, (input, call) => rotateSessionTicketKeys(runtime, input, call)),
    ]),
  ],
});
