// Canaries: how changes of a cluster are tried out, what is being tried, and what came of it.
import type { ServiceSchema } from 'moleculer';
import { rollout } from '../../contract/resources/rollout.ts';
import { PUBLISHING } from '../../mixins/belongings.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { getRolloutEvent, listRolloutEvents } from './events.ts';
import { getRolloutPolicy, setRolloutPolicy } from './policy.ts';
import { abortRollout, getRollout, promoteRollout } from './rollout.ts';

export const roles: readonly Role[] = ['app'];
export const belongings = PUBLISHING;

export default (runtime: Runtime): ServiceSchema => ({
  name: 'rollouts',
  mixins: [
    contractService([
      implement(rollout.rollout, (input) => getRollout(runtime, input)),
      implement(rollout.rolloutPolicy, (input) => getRolloutPolicy(runtime, input)),
      implement(rollout.setRolloutPolicy, (input, call) => setRolloutPolicy(runtime, input, call)),
      implement(rollout.promoteRollout, (input, call) => promoteRollout(runtime, input, call)),
      implement(rollout.abortRollout, (input, call) => abortRollout(runtime, input, call)),
      implement(rollout.rolloutEvents, (input) => listRolloutEvents(runtime, input)),
      implement(rollout.rolloutEvent, (input) => getRolloutEvent(runtime, input)),
    ]),
  ],
});
