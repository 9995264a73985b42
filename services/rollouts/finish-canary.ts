import { fail } from '../../contract/errors.ts';
import type { Rollout } from '../../contract/resources/rollout.ts';
import type { Tx } from '../../runtime/write.ts';

type Outcome = NonNullable<Rollout['outcome']>;

/** Gives what the canary tries to all nodes. Throws ROLLOUT_NOT_ACTIVE where none runs. */
export async function promoteCanary(_tx: Tx, _clusterId: string, _outcome: Outcome): Promise<void> {
  fail('ROLLOUT_NOT_ACTIVE');
}

/** Takes what the canary tries back from its nodes. Throws ROLLOUT_NOT_ACTIVE where none runs. */
export async function abortCanary(_tx: Tx, _clusterId: string, _outcome: Outcome): Promise<void> {
  fail('ROLLOUT_NOT_ACTIVE');
}
