// Sign-in beyond the password: second steps, trusted devices and passkeys. Secrets that a browser keeps are stored as
// their SHA-256 only.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- Attempts of a client address in the running window, one count a kind; counted only in production.
    drop table sign_in_attempt;
    create unlogged table attempt (
      kind text not null,
      address text not null,
      count integer not null,
      window_started_at timestamptz not null default now(),
      primary key (kind, address)
    );
    create index attempt_age on attempt (window_started_at);

    -- secret: sealed. In force while "user".two_factor_enabled; until then it waits for its first code.
    -- last_step: the newest 30 s step whose code was used; none is taken twice.
    -- wrong_codes: since wrong_since, by anyone who knew the password.
    create table two_factor (
      user_id text primary key references "user" on delete cascade,
      secret text not null,
      last_step bigint,
      wrong_codes integer not null default 0,
      wrong_since timestamptz,
      created_at timestamptz not null default now()
    );

    -- code_hash: scrypt, with one salt for a user's codes. A used code is deleted.
    create table backup_code (
      user_id text not null references two_factor on delete cascade,
      code_hash text not null,
      primary key (user_id, code_hash)
    );

    -- A sign-in whose password was right and whose second step is due.
    create table second_step (
      token_hash bytea primary key,
      user_id text not null references "user" on delete cascade,
      lasting boolean not null,
      wrong_codes integer not null default 0,
      expires_at timestamptz not null
    );
    create index second_step_user on second_step (user_id);
    create index second_step_expiry on second_step (expires_at);

    -- A browser that is not asked for a second step.
    create table trusted_device (
      token_hash bytea primary key,
      user_id text not null references "user" on delete cascade,
      created_at timestamptz not null default now(),
      expires_at timestamptz not null
    );
    create index trusted_device_user on trusted_device (user_id);
    create index trusted_device_expiry on trusted_device (expires_at);

    -- counter: the last signature counter its authenticator showed; 0 where it keeps none.
    create table passkey (
      id text primary key default uuidv7()::text,
      user_id text not null references "user" on delete cascade,
      name text not null,
      credential_id text not null unique,
      public_key bytea not null,
      counter bigint not null,
      transports jsonb not null,
      device_type text not null check (device_type in ('singleDevice', 'multiDevice')),
      backed_up boolean not null,
      created_at timestamptz not null default now(),
      last_used_at timestamptz
    );
    create index passkey_user on passkey (user_id);

    -- Challenges that browsers were given and have not answered. session_id: whose registration; null for a sign-in.
    create unlogged table passkey_challenge (
      challenge text primary key,
      session_id text references session on delete cascade,
      address text not null,
      created_at timestamptz not null default now(),
      expires_at timestamptz not null
    );
    create index passkey_challenge_address on passkey_challenge (address, created_at);
    create index passkey_challenge_expiry on passkey_challenge (expires_at);

    create index session_by_user on session (user_id);
    -- false: the cookie ends with the browser, also when it is sent again.
    alter table session add column lasting boolean not null default true;
  `);
}
