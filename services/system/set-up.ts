import { createHash, timingSafeEqual } from 'node:crypto';
import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { system } from '../../contract/resources/system.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { admitAttempt } from '../../models/auth/attempt.ts';
import { User } from '../../models/auth/user.ts';
import { createCluster } from '../../models/clusters/create-cluster.ts';
import { completeSetup, lockSetup, setupCompletedAt } from '../../models/db/console-state.ts';
import type { Call } from '../../runtime/call.ts';
import type { Passwords } from '../../runtime/passwords.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';

const FIRST_CLUSTER = 'default';
const LOCK_NOT_AVAILABLE = '55P03';

type Setup = Input<typeof system.setup>;

/**
 * Creates the operator, the first cluster with its default group and its first revision, once. SETUP_DONE afterwards,
 * SETUP_IN_PROGRESS while another setup runs, SETUP_TOKEN_INVALID (audited) with another token.
 */
export async function setUp(
  runtime: Runtime,
  passwords: Passwords,
  input: Setup,
  call: Call,
): Promise<Output<typeof system.setup>> {
  if ((await setupCompletedAt(runtime.pools.api)) !== null) fail('SETUP_DONE');
  await admitAttempt(runtime, 'setup', call.ip);
  if (!(await tokenIsRight(runtime, input.setupToken))) {
    // No answer to keep: the refusal is the call's.
    await write(runtime, { ...call, idempotency: null }, {}, (tx) =>
      recordAudit(tx, 'system.setup_rejected', { type: 'system', id: null, name: null }),
    );
    fail('SETUP_TOKEN_INVALID');
  }
  const passwordHash = await passwords.hash(input.password);
  return write(runtime, call, {}, async (tx) => {
    const state = await lockSetup(tx.sql).catch(asInProgress);
    if (state.setup_completed_at !== null) fail('SETUP_DONE');
    const { name, email } = input;
    const user = await User.query(tx.sql).insert({ name, email, passwordHash }).returning('*');
    call.actor = { type: 'user', id: user.id, name };
    await createCluster(tx, runtime.sealer, { name: FIRST_CLUSTER });
    await completeSetup(tx.sql, tx.now);
    await recordAudit(tx, 'system.setup', { type: 'system', id: null, name: null });
    return { userId: user.id };
  });
}

async function tokenIsRight({ pools }: Runtime, token: string): Promise<boolean> {
  const row = await pools.api('console_state').first('setup_token_hash');
  const expected = row?.setup_token_hash as Buffer | null | undefined;
  if (!expected) return false;
  return timingSafeEqual(createHash('sha256').update(token).digest(), expected);
}

function asInProgress(error: unknown): never {
  if ((error as { code?: unknown }).code === LOCK_NOT_AVAILABLE) fail('SETUP_IN_PROGRESS');
  throw error;
}
