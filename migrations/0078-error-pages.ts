// Error pages and maintenance of sites.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- settings: the object of the contract, complete. A site without a row has the defaults.
    create table site_pages (
      site_id text primary key references site on delete cascade,
      cluster_id text not null references cluster,
      settings jsonb not null,
      updated_at timestamptz not null
    );
    create index site_pages_cluster on site_pages (cluster_id, site_id);
    create table site_maintenance (
      site_id text primary key references site on delete cascade,
      cluster_id text not null references cluster,
      settings jsonb not null,
      updated_at timestamptz not null
    );
    create index site_maintenance_cluster on site_maintenance (cluster_id, site_id);
  `);
}
