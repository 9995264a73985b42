// Which requests of sites are logged.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- settings: the object of the contract, complete. A site without a row has the defaults: no request is logged.
    create table site_logs (
      site_id text primary key references site on delete cascade,
      cluster_id text not null references cluster,
      settings jsonb not null,
      updated_at timestamptz not null
    );
    create index site_logs_cluster on site_logs (cluster_id, site_id);
  `);
}
