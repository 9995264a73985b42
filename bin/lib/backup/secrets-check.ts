// Which secrets of a restored database the master key opens.
import type { Client } from 'pg';
import { quoted } from '../../../runtime/backup/catalog.ts';
import { SEALED_COLUMNS } from '../../../runtime/reseal.ts';
import type { Sealer } from '../../../runtime/sealer.ts';

export interface SecretsCheck {
  opened: number;
  /** As "table.column of row", never a value. */
  closed: string[];
}

/** Tries every sealed secret; columns that a backup of an older release lacks hold none. */
export async function checkSecrets(client: Client, sealer: Sealer): Promise<SecretsCheck> {
  const check: SecretsCheck = { opened: 0, closed: [] };
  for (const { table, column, primaryKey } of SEALED_COLUMNS) {
    const { rows } = await client.query<{ row: string; sealed: string }>(
      `select ${quoted([primaryKey])}::text as row, ${quoted([column])} as sealed from ${quoted([table])}
        where ${quoted([column])} is not null order by 1`,
    );
    for (const { row, sealed } of rows) {
      try {
        sealer.open(sealed, { table, column, row });
        check.opened++;
      } catch {
        check.closed.push(`${table}.${column} of ${row}`);
      }
    }
  }
  return check;
}
