// How sites challenge their visitors, and the keys that sign passes.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- settings: the object of the contract, complete. A site without a row has the defaults.
    create table site_protection (
      site_id text primary key references site on delete cascade,
      cluster_id text not null references cluster,
      settings jsonb not null,
      updated_at timestamptz not null,
      under_attack boolean not null generated always as (coalesce((settings->>'underAttack')::boolean, false)) stored,
      follows_template boolean not null generated always as (coalesce(
        (settings->'cc'->>'enabled')::boolean and (settings->'cc'->>'followTemplate')::boolean, false)) stored
    );
    create index site_protection_cluster on site_protection (cluster_id, site_id);
    create index site_protection_following on site_protection (cluster_id) where follows_template;
    create index site_protection_under_attack on site_protection (cluster_id) where under_attack;

    -- rotated_at: when the version began.
    create table challenge_key_set (
      cluster_id text primary key references cluster on delete cascade,
      version bigint not null,
      rotated_at timestamptz not null
    );
    -- secret: sealed under the master key.
    create table challenge_key (
      id text primary key,
      cluster_id text not null references challenge_key_set on delete cascade,
      role text not null check (role in ('next', 'current', 'previous')),
      secret text not null,
      -- Roles move in one statement.
      unique (cluster_id, role) deferrable
    );

    -- Version of the challenge keys that the node said it holds; 0 = none.
    alter table node_state add column challenge_keys_version bigint not null default 0;
  `);
}
