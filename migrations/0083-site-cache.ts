// Cache rules and cache settings of sites.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- A site without a row has no rules and the default settings. Rules and settings are objects of the contract, complete.
    create table site_cache (
      site_id text primary key references site on delete cascade,
      cluster_id text not null references cluster,
      rules jsonb not null,
      settings jsonb not null,
      -- Of each rule in order: its condition as nodes get it. A later version of the language changes none.
      conditions bytea[] not null,
      -- What the conditions need of nodes, and the IP lists that they name.
      features text[] not null,
      refs text[] not null,
      check (jsonb_array_length(rules) = cardinality(conditions))
    );
    create index site_cache_cluster on site_cache (cluster_id, site_id);

    create table cache_rule_ip_list (
      ip_list_id text not null references ip_list,
      site_id text not null references site_cache on delete cascade,
      priority smallint not null,
      primary key (ip_list_id, site_id, priority)
    );
    create index cache_rule_ip_list_site on cache_rule_ip_list (site_id);

    -- Entries with cache rules that nodes run, by what they refer to.
    create index config_entry_site_cache on config_entry using gin (refs) where to_revision is null and kind = 'site-cache';

    -- Random bytes under which purge keys are kept and compared, sealed under the master key.
    create table purge_secret (
      cluster_id text primary key references cluster on delete cascade,
      secret text not null
    );
    -- key_digest: HMAC-SHA-256 of the key under that secret; the key itself is kept nowhere.
    create table site_purge_method (
      site_id text primary key references site on delete cascade,
      cluster_id text not null references cluster,
      enabled boolean not null,
      key_digest bytea check (octet_length(key_digest) = 32),
      check (not enabled or key_digest is not null)
    );
    create index site_purge_method_cluster on site_purge_method (cluster_id, site_id);
  `);
}
