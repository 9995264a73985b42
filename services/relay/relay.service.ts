// Moves wake-ups from the outbox to Redis.
import type { ServiceSchema } from 'moleculer';
import type { Role } from '../../runtime/env.ts';
import { type Relay, startRelay } from '../../runtime/relay.ts';
import type { Runtime } from '../../runtime/runtime.ts';

export const roles: readonly Role[] = ['worker'];

export default (runtime: Runtime): ServiceSchema => {
  let relay: Relay | null = null;
  return {
    name: 'relay',
    async started() {
      relay = startRelay(runtime);
    },
    async stopped() {
      await relay?.stop();
    },
  };
};
