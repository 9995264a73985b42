// Messages about alerts: the channels that they go through, what each channel covers, and what became of each message.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    create table alert_channel (
      id text primary key,
      name text not null,
      enabled boolean not null,
      -- Receives every alert, without a subscription.
      platform boolean not null,
      locale text not null check (locale in ('zh-CN', 'en')),
      kind text not null,
      -- JSON, sealed: addresses and tokens.
      config text not null,
      last_error text,
      last_sent_at timestamptz,
      created_at timestamptz not null,
      updated_at timestamptz not null
    );
    create table alert_subscription (
      id text primary key,
      channel_id text not null unique references alert_channel on delete cascade,
      kinds text[] not null,
      all_sites boolean not null,
      enabled boolean not null,
      created_at timestamptz not null,
      updated_at timestamptz not null
    );
    create table alert_subscription_site (
      subscription_id text not null references alert_subscription on delete cascade,
      site_id text not null references site on delete cascade,
      primary key (subscription_id, site_id)
    );
    create index alert_subscription_site_site on alert_subscription_site (site_id);
    create table alert_smtp (
      id integer primary key check (id = 1),
      settings jsonb not null,
      password text,
      updated_at timestamptz not null
    );

    -- When messages about its beginning and its end were made. What began before this migration is not told.
    alter table alert add column announced_at timestamptz, add column end_announced_at timestamptz;
    update alert set announced_at = started_at, end_announced_at = resolved_at;
    create index alert_to_announce on alert (started_at) where announced_at is null;
    create index alert_end_to_announce on alert (resolved_at) where resolved_at is not null and end_announced_at is null;
    create index alert_started on alert (started_at desc);

    create table alert_delivery (
      -- The receiver tells two copies of a message by it.
      id text primary key default uuidv7()::text,
      alert_id text not null references alert on delete cascade,
      channel_id text not null references alert_channel on delete cascade,
      status text not null check (status in ('firing', 'resolved')),
      -- Names as of the beginning.
      facts jsonb not null,
      state text not null default 'waiting' check (state in ('waiting', 'sent', 'failed', 'dropped')),
      attempts integer not null default 0,
      due_at timestamptz not null,
      leased_until timestamptz,
      last_error text,
      created_at timestamptz not null,
      finished_at timestamptz,
      unique (alert_id, channel_id, status)
    );
    create index alert_delivery_waiting on alert_delivery (channel_id, due_at) where state = 'waiting';
  `);
}
