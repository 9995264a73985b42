// Events of requests in which rules of the WAF matched, among the security events.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- waf: request id, method, path, address, rules, score, threshold, blocked, matches; of waf_matched alone.
    alter table security_event add column waf jsonb;
    alter table security_event drop constraint security_event_kind_check;
    alter table security_event add constraint security_event_kind_check
      check (kind in ('site_level', 'path_level', 'ip_banned', 'waf_matched'));
    -- Many of one sort must not stand in the way of the other.
    drop index security_event_site;
    create index security_event_site on security_event (site_id, occurred_at desc, id desc) where kind <> 'waf_matched';
    create index security_event_waf on security_event (site_id, occurred_at desc, id desc) where kind = 'waf_matched';
  `);
}
