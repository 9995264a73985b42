// What the console itself needs: its history (epoch), settings, the operator, access keys, audit and the outbox.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    create extension if not exists pg_trgm;

    -- One row. epoch: Unix ms at which this history began; a restored database starts a new one.
    create table console_state (
      id boolean primary key default true check (id),
      epoch bigint not null,
      system_identifier text not null,
      timeline bigint not null,
      master_key_fingerprint text,
      setup_token text,
      setup_token_hash bytea,
      setup_completed_at timestamptz
    );

    -- Settings of the console, one row a group; a missing row means the group's defaults.
    create table setting (
      key text primary key,
      value jsonb not null,
      updated_at timestamptz not null default now()
    );

    create table "user" (
      id text primary key default uuidv7()::text,
      name text not null,
      email text not null,
      password_hash text not null,
      two_factor_enabled boolean not null default false,
      created_at timestamptz not null default now(),
      updated_at timestamptz not null default now()
    );
    create unique index user_email on "user" (lower(email));

    -- token_hash: SHA-256 of the cookie's secret.
    create table session (
      id text primary key default uuidv7()::text,
      user_id text not null references "user" on delete cascade,
      token_hash bytea not null unique,
      ip text,
      user_agent text,
      created_at timestamptz not null default now(),
      refreshed_at timestamptz not null default now(),
      expires_at timestamptz not null
    );
    create index session_expiry on session (expires_at);

    -- Sign-in attempts of a client address in the running window; counted only in production.
    create unlogged table sign_in_attempt (
      address text primary key,
      count integer not null,
      window_started_at timestamptz not null default now()
    );
    create index sign_in_attempt_age on sign_in_attempt (window_started_at);

    -- secret_hash: SHA-256 of the whole key; prefix: what lists show of it.
    create table access_key (
      id text primary key default uuidv7()::text,
      user_id text not null references "user" on delete cascade,
      name text not null,
      prefix text not null,
      secret_hash bytea not null unique,
      scope text not null check (scope in ('read', 'readwrite')),
      created_at timestamptz not null default now(),
      last_used_at timestamptz,
      revoked_at timestamptz
    );

    create table audit_entry (
      id bigint generated always as identity primary key,
      occurred_at timestamptz not null default now(),
      actor_type text not null,
      actor_id text,
      actor_name text,
      ip text,
      user_agent text,
      action text not null,
      target_type text,
      target_id text,
      target_name text,
      metadata jsonb not null default '{}'
    );
    create index audit_entry_time on audit_entry (occurred_at desc, id desc);
    create index audit_entry_target on audit_entry (target_type, target_id);

    -- Wake-ups written in the change's transaction: a pointer, never data. Relays move them to Redis.
    create table outbox (
      id bigint generated always as identity primary key,
      topic text not null,
      key text not null
    );

    -- Record of a request with an Idempotency-Key: claimed by the gateway, completed inside the action's transaction.
    -- released: the attempt ended without an answer worth keeping; the next request with the key runs.
    create table idempotency_record (
      namespace text not null,
      key text not null,
      method text not null,
      path text not null,
      body_hash bytea not null,
      attempt integer not null default 1,
      state text not null check (state in ('running', 'done', 'released')),
      status integer,
      body text,
      headers jsonb,
      started_at timestamptz not null default now(),
      finished_at timestamptz,
      primary key (namespace, key)
    );
    create index idempotency_record_age on idempotency_record (started_at);
  `);
}
