// Clusters may accept larger header fields.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- {"fieldBytes": …}; null: the default.
    alter table cluster add column header_limit jsonb;
  `);
}
