// Silences of alerts, messages that tell of many alerts at once, and WAF events by the address of their client.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    create table alert_silence (
      id text primary key,
      -- Empty: all kinds.
      kinds text[] not null,
      -- Of what the alerts are about; null: of everything.
      resource_id text,
      resource_name text not null,
      reason text not null,
      created_by text not null,
      created_at timestamptz not null,
      ends_at timestamptz not null,
      check (kinds <> '{}' or resource_id is not null)
    );
    -- When a silence first kept it from being told.
    alter table alert add column silenced_at timestamptz;

    -- grouped: the message group_id tells of it, too.
    alter table alert_delivery add column group_id text references alert_delivery on delete cascade;
    alter table alert_delivery drop constraint alert_delivery_state_check;
    alter table alert_delivery add constraint alert_delivery_state_check
      check (state in ('waiting', 'sent', 'failed', 'dropped', 'grouped'));
    create index alert_delivery_group on alert_delivery (group_id) where group_id is not null;
    create index alert_delivery_made on alert_delivery (channel_id, created_at);

    create index security_event_waf_client on security_event ((waf ->> 'address'), occurred_at desc, id desc)
      where kind = 'waf_matched';
  `);
}
