// Moves wake-ups from the outbox to Redis.
import type { ServiceSchema } from 'moleculer';
import type { Role } from '../../mixins/env.ts';
import { type Relay, startRelay } from '../../mixins/relay.ts';
import type { Runtime } from '../../mixins/runtime.ts';

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
