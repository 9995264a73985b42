// Moves wake-ups from the outbox to Redis.
import type { ServiceSchema } from 'moleculer';
import { runs } from '../../mixins/runs.ts';
import { startRelay } from '../../pipeline/relay.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';

export const roles: readonly Role[] = ['worker'];
export const pools = { bans: 3 };

export default (runtime: Runtime): ServiceSchema => ({ name: 'relay', mixins: [runs(() => startRelay(runtime))] });
