// Numbers of audit entries by day, so that the length of a list is known without counting all of it; and changes of the
// console's own settings get the target that they have from now on.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- Up to when the entries of a log are counted by day: midnight, UTC. No row: nothing is.
    create table counted_log (
      log text primary key check (log in ('audit_entry', 'security_event')),
      until timestamptz not null
    );

    -- Of counted days; triggers keep it true for what is written or deleted later. target_type: '' for none.
    create table audit_day (
      day date not null,
      action text not null,
      target_type text not null,
      actor_type text not null,
      entries bigint not null,
      primary key (day, action, target_type, actor_type)
    );

    update audit_entry set target_type = 'system_setting', target_id = case action
        when 'system.bans_update' then 'bans' when 'system.cc_template_update' then 'cc_template'
        when 'system.protection_update' then 'protection' else 'origin_allow_list' end
     where target_type is null and action in ('system.bans_update', 'system.cc_template_update',
       'system.protection_update', 'system.origin_allow_list_update');
  `);
}
