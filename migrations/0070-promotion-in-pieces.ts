// A canary of many entries is promoted in pieces, and a process that ends between two of them loses none.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- The outcome that the promotion under way will have; null: none is.
    alter table cluster_rollout add column promoting text
      check (promoting is null or candidate_revision is not null);
  `);
}
