// Ports that a cluster listens on besides the usual ones, and sites that use some of them.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- The object of the contract; null = none.
    alter table cluster add column listen_ports jsonb;
    -- Few sites have other ports than the usual ones.
    create index site_ports on site (cluster_id) where ports <> '{"http": [80], "https": [443]}'::jsonb;
  `);
}
