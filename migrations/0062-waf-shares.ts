// Events of sites of which more requests than before are attacks: the console's own, so of no node.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    alter table security_event alter node_id drop not null;
    alter table security_event drop constraint security_event_kind_check;
    alter table security_event add constraint security_event_kind_check
      check (kind in ('site_level', 'path_level', 'ip_banned', 'waf_matched', 'waf_share'));
    -- Sites in which rules of the WAF matched lately (event as RuleEvent of the messages has it), whatever else there is.
    create index rule_minute_waf on rule_minute (minute, site_id) where event = 7;
  `);
}
