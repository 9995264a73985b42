// Certificates are found by a name, and WAF events by what the filters of their list ask for, without reading the others.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    create index certificate_names on certificate using gin (names);

    create index security_event_waf_request on security_event (site_id, (waf ->> 'requestId'), occurred_at desc)
      where kind = 'waf_matched';
    create index security_event_waf_path on security_event (site_id, (waf ->> 'path') text_pattern_ops)
      where kind = 'waf_matched';
    create index security_event_waf_address on security_event (site_id, ((waf ->> 'address')::inet))
      where kind = 'waf_matched';
    create index security_event_waf_rules on security_event using gin ((waf -> 'rules') jsonb_path_ops)
      where kind = 'waf_matched';
  `);
}
