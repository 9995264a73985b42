// How requests of sites are inspected.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- settings: the object of the contract, complete. A site without a row has the defaults: no inspection.
    create table site_waf (
      site_id text primary key references site on delete cascade,
      cluster_id text not null references cluster,
      settings jsonb not null,
      updated_at timestamptz not null
    );
    create index site_waf_cluster on site_waf (cluster_id, site_id);
  `);
}
