// What alerts are about: a site, a node, a cluster, a certificate, an upgrade, or the installation.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- An alert that names none of these is about the installation. None refers to its row, so that history outlives it.
    alter table alert add column node_id text, add column cluster_id text, add column certificate_id text,
      add column upgrade_id text,
      add constraint alert_subject check (num_nonnulls(site_id, node_id, cluster_id, certificate_id, upgrade_id) <= 1);
    create unique index alert_open_subject on alert (kind, site_id, node_id, cluster_id, certificate_id, upgrade_id)
      nulls not distinct where resolved_at is null;
    -- Alerts are kept for a time after they ended, however long they were open.
    create index alert_resolved on alert (resolved_at) where resolved_at is not null;
    drop index alert_age;
  `);
}
