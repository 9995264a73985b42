// What each published entry belongs to and ends with; null: the cluster itself.
import type { Knex } from 'knex';

const OWNER = `case
  when kind in ('site', 'protection') then 'site:' || resource_id
  when kind in ('ip-list', 'ip-list-chunk') then 'list:' || split_part(resource_id, '/', 1) end`;

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    alter table config_entry add column owner text;
    update config_entry set owner = ${OWNER} where ${OWNER} is not null;
    -- Its condition keeps it from those who look for the live entry of a name: while the statistics are those of an empty
    -- table, the planner takes the youngest index that could do.
    create index config_entry_owner on config_entry (owner, cluster_id, to_revision) where owner is not null;
    -- The few live entries that need a capability.
    create index config_entry_needs on config_entry (cluster_id) where to_revision is null and features <> '{}';

    -- A console of the release before publishes without owners.
    create function config_entry_owner() returns trigger language plpgsql as $$
    begin
      new.owner := ${OWNER.replaceAll(/\b(kind|resource_id)\b/g, 'new.$1')};
      return new;
    end $$;
    create trigger config_entry_owner before insert on config_entry
      for each row when (new.owner is null and new.kind in ('site', 'protection', 'ip-list', 'ip-list-chunk'))
      execute function config_entry_owner();
  `);
}
