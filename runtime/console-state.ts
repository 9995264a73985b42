// What a console finds or makes of itself in its database at start: the history it belongs to, whether the master key
// is the right one, and the setup token while nobody has set it up.
import { createHash, randomBytes } from 'node:crypto';
import type { Knex } from 'knex';
import type { Runtime } from './runtime.ts';
import type { SecretPlace } from './sealer.ts';

export const SETUP_TOKEN_PLACE: SecretPlace = { table: 'console_state', column: 'setup_token', row: 'true' };

interface StateRow {
  master_key_fingerprint: string | null;
  setup_token: string | null;
  setup_completed_at: Date | null;
}

/** Makes the state row where it is missing and checks the key; answers the setup token, or null once set up. */
export async function prepareConsoleState(runtime: Runtime): Promise<string | null> {
  const { sealer } = runtime;
  return runtime.pools.api.transaction(async (sql) => {
    await sql.raw("set local lock_timeout = '10s'");
    await sql.raw(
      `insert into console_state (epoch, system_identifier, timeline)
       select ?, (pg_control_system()).system_identifier::text, (pg_control_checkpoint()).timeline_id
       on conflict do nothing`,
      [Date.now()],
    );
    const row = (await sql('console_state')
      .forUpdate()
      .first('master_key_fingerprint', 'setup_token', 'setup_completed_at')) as StateRow;
    const { fingerprint, previousFingerprint } = sealer;
    const writtenUnder = row.master_key_fingerprint;
    if (writtenUnder !== null && writtenUnder === previousFingerprint) {
      runtime.log.warn(
        { fingerprint, previousFingerprint },
        'secrets are sealed under the previous master key, run reseal',
      );
    } else if (writtenUnder !== null && writtenUnder !== fingerprint) {
      throw new Error(`SVC_MASTER_KEY is not the key of this database (${writtenUnder}); nothing was changed`);
    }
    if (writtenUnder === null) await sql('console_state').update({ master_key_fingerprint: fingerprint });
    if (row.setup_completed_at !== null) return null;
    if (row.setup_token !== null) return sealer.open(row.setup_token, SETUP_TOKEN_PLACE).toString();
    return makeSetupToken(sql, runtime);
  });
}

async function makeSetupToken(sql: Knex, { sealer }: Runtime): Promise<string> {
  const token = randomBytes(24).toString('base64url');
  await sql('console_state').update({
    setup_token: sealer.seal(Buffer.from(token), SETUP_TOKEN_PLACE),
    setup_token_hash: createHash('sha256').update(token).digest(),
  });
  return token;
}
