// Certificates from authorities: accounts, orders under way, credentials for DNS, and who asked us to wait.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- The authority of one's own; no row: none.
    create table acme_directory (
      id smallint primary key check (id = 1),
      url text,
      -- PEM of those that vouch for its server; '' = those of the system.
      ca_pem text not null,
      eab_kid text not null,
      -- Sealed.
      eab_hmac_key text,
      updated_at timestamptz not null
    );

    -- Shared by all certificates that name the same directory, external account and address.
    create table acme_account (
      id text primary key default uuidv7()::text,
      directory_url text not null,
      -- Of an external account; '' without one.
      eab_kid text not null,
      email text not null,
      -- Sealed: PKCS #8 in DER, and the key of the external account.
      private_key text not null,
      eab_hmac_key text,
      -- What the authority calls the account; null until it was told of it.
      url text,
      created_at timestamptz not null default now(),
      unique (directory_url, eab_kid, email)
    );

    -- Where servers of names are told of answers for authorities.
    create table dns_credential (
      id text primary key default uuidv7()::text,
      name text not null,
      provider text not null check (provider in ('webhook', 'rfc2136')),
      zone text not null,
      -- What is no secret, and the secret, sealed.
      settings jsonb not null,
      secret text not null,
      created_at timestamptz not null default now(),
      updated_at timestamptz not null default now()
    );

    -- The latest order of a certificate. lease rises with each step: who holds a former one writes nothing any more.
    create table acme_order (
      certificate_id text primary key references certificate on delete cascade,
      account_id text not null references acme_account,
      names text[] not null,
      state text not null check (state in ('check', 'account', 'order', 'challenges', 'present', 'propagate', 'validate',
        'finalize', 'download', 'done', 'failed')),
      -- Where it failed.
      failed_step text,
      -- Somebody waits for it: before those that nobody asked for.
      urgent boolean not null,
      lease bigint not null default 0,
      -- When to go on; null when it is over.
      next_at timestamptz,
      -- Tries of this step that met a fault on the way.
      tries smallint not null default 0,
      started_at timestamptz not null,
      step_at timestamptz not null,
      finished_at timestamptz,
      order_url text,
      finalize_url text,
      certificate_url text,
      -- Made before the authority is asked to sign, so that a repetition asks for the same. Sealed PKCS #8 in DER.
      private_key text,
      csr bytea,
      -- { url, name, wildcard, state, challengeUrl, token, error } of each name.
      authorizations jsonb not null default '[]',
      -- Places in the feeds of answers of clusters, by their ids.
      places jsonb not null default '{}',
      -- What it says it replaces (RFC 9773).
      replaces text,
      error text,
      error_params jsonb not null default '{}',
      -- When the authority is asked again when to renew.
      renewal_check_at timestamptz
    );
    create index acme_order_due on acme_order (urgent desc, next_at) where next_at is not null;
    create index acme_order_account on acme_order (account_id);
    create index acme_order_renewal on acme_order (renewal_check_at) where renewal_check_at is not null;

    -- TXT records that are or may be there. ended: nobody needs it any more.
    create table acme_dns_record (
      certificate_id text not null,
      name text not null,
      value text not null,
      credential_id text not null references dns_credential,
      ended boolean not null default false,
      tries smallint not null default 0,
      next_at timestamptz not null default now(),
      primary key (certificate_id, name, value)
    );
    create index acme_dns_record_due on acme_dns_record (next_at) where ended;
    create index acme_dns_record_credential on acme_dns_record (credential_id);

    -- An authority asked not to be asked before then: of all (directory), of an account, of a registered domain.
    create table acme_bucket (
      key text primary key,
      until timestamptz not null
    );
  `);
}
