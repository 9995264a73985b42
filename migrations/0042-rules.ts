// Rules of sites and of the platform.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- A site without a row has no rules. Nodes get body, which is null without an enabled rule; it was compiled by this
    -- version of the compiler.
    create table rule_set (
      -- The site's; '' for the rules of the platform.
      id text primary key,
      site_id text generated always as (nullif(id, '')) stored references site on delete cascade,
      cluster_id text references cluster,
      -- Objects of the contract, complete, in their order.
      rules jsonb not null,
      body bytea,
      features text[] not null,
      refs text[] not null,
      compiler_version integer not null,
      -- Groups of origins that they name, enabled or not.
      origin_groups text[] not null default '{}',
      -- Ids of enabled rules that this version of the compiler refuses; the body has them as they were before.
      broken text[] not null default '{}',
      updated_at timestamptz not null,
      check ((site_id is null) = (cluster_id is null))
    );
    create index rule_set_cluster on rule_set (cluster_id, site_id);
    create index rule_set_compiler on rule_set (compiler_version);
    create index rule_set_broken on rule_set (cluster_id) where broken <> '{}';

    -- IP lists that rules name, enabled or not.
    create table rule_ip_list (
      ip_list_id text not null references ip_list,
      rule_set_id text not null references rule_set on delete cascade,
      -- Place of the rule in its list, and what it is called.
      position smallint not null,
      rule_id text not null,
      name text not null,
      primary key (ip_list_id, rule_set_id, position)
    );
    create index rule_ip_list_rule_set on rule_ip_list (rule_set_id);

    -- Entries with rules that nodes run, by what they refer to.
    create index config_entry_rules on config_entry using gin (refs)
      where to_revision is null and kind in ('site-rules', 'platform-rules');

    insert into rule_set (id, rules, features, refs, compiler_version, updated_at)
      values ('', '[]', '{}', '{}', 1, date_trunc('milliseconds', now()));
  `);
}
