// Numbers that a restored database must not give again.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- The next revision is beyond it: nodes and API clients may have seen revisions that a restored database has forgotten.
    alter table cluster_head add column number_floor bigint not null default 0;
  `);
}
