// Machine identities with keys of their own, and indexes that keep the audit log fast to read at millions of entries.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    create table service_account (
      id text primary key default uuidv7()::text,
      name text not null constraint service_account_name_key unique,
      scopes text[] not null,
      enabled boolean not null,
      created_at timestamptz not null default now(),
      updated_at timestamptz not null default now()
    );

    -- secret_hash: SHA-256 of the whole key; prefix: what lists show of it.
    create table service_account_key (
      id text primary key default uuidv7()::text,
      service_account_id text not null references service_account on delete cascade,
      name text not null,
      prefix text not null,
      secret_hash bytea not null unique,
      created_at timestamptz not null default now(),
      last_used_at timestamptz,
      revoked_at timestamptz
    );
    create index service_account_key_account on service_account_key (service_account_id, id desc);

    -- Each filter of the list reads its own newest entries; facets step from one value to the next.
    create index audit_entry_action on audit_entry (action, occurred_at desc, id desc);
    create index audit_entry_target_type on audit_entry (target_type, occurred_at desc, id desc);
    create index audit_entry_actor_type on audit_entry (actor_type, occurred_at desc, id desc);
    drop index audit_entry_target;
    create index audit_entry_target on audit_entry (target_type, target_id, occurred_at desc, id desc);
  `);
}
