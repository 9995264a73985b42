// Changing the master key: everything that is sealed under the previous key is sealed again under the new one.
import type { Knex } from 'knex';
import type { Sealer } from './sealer.ts';

/** A column with sealed secrets. The row part of a secret's place is the row's primary key as text. */
export interface SealedColumn {
  readonly table: string;
  readonly column: string;
  readonly primaryKey: string;
}

/** All of them; a test compares the list with what a database really holds. */
export const SEALED_COLUMNS: readonly SealedColumn[] = [
  { table: 'alert_channel', column: 'config', primaryKey: 'id' },
  { table: 'alert_smtp', column: 'password', primaryKey: 'id' },
  { table: 'certificate', column: 'private_key', primaryKey: 'id' },
  { table: 'certificate_authority', column: 'private_key', primaryKey: 'id' },
  { table: 'console_state', column: 'setup_token', primaryKey: 'id' },
  { table: 'console_state', column: 'mark_key', primaryKey: 'id' },
  { table: 'challenge_key', column: 'secret', primaryKey: 'id' },
  { table: 'acme_directory', column: 'eab_hmac_key', primaryKey: 'id' },
  { table: 'acme_account', column: 'private_key', primaryKey: 'id' },
  { table: 'acme_account', column: 'eab_hmac_key', primaryKey: 'id' },
  { table: 'acme_order', column: 'private_key', primaryKey: 'certificate_id' },
  { table: 'dns_credential', column: 'secret', primaryKey: 'id' },
  { table: 'purge_secret', column: 'secret', primaryKey: 'cluster_id' },
  { table: 'session_ticket_key', column: 'secret', primaryKey: 'id' },
  { table: 'two_factor', column: 'secret', primaryKey: 'user_id' },
];

const BATCH = 500;
const LOCK_WAIT = '10s';

/**
 * Seals everything under the sealer's key and then records that key as the database's; answers how many secrets were
 * sealed again. Runs beside consoles that know both keys; killed at any point, it is run again. Throws when a secret is
 * sealed under a third key.
 */
export async function reseal(sql: Knex, sealer: Sealer): Promise<number> {
  let resealed = 0;
  for (const column of SEALED_COLUMNS) {
    for (;;) {
      const count = await resealBatch(sql, sealer, column);
      if (count === 0) break;
      resealed += count;
    }
  }
  await sql('console_state').update({ master_key_fingerprint: sealer.fingerprint });
  return resealed;
}

function resealBatch(sql: Knex, sealer: Sealer, { table, column, primaryKey }: SealedColumn): Promise<number> {
  return sql.transaction(async (tx) => {
    await tx.raw("select set_config('lock_timeout', ?, true)", [LOCK_WAIT]);
    const { rows } = await tx.raw<{ rows: { row: string; sealed: string }[] }>(
      `select ??::text as row, ?? as sealed from ??
        where ?? is not null and split_part(??, '.', 2) <> ? order by 1 limit ? for update`,
      [primaryKey, column, table, column, column, sealer.fingerprint, BATCH],
    );
    for (const { row, sealed } of rows) {
      const place = { table, column, row };
      await tx(table)
        .whereRaw('??::text = ?', [primaryKey, row])
        .update({ [column]: sealer.seal(sealer.open(sealed, place), place) });
    }
    return rows.length;
  });
}
