// Certificates with their keys, and HTTPS of sites.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    create table certificate (
      id text primary key default uuidv7()::text,
      name text not null,
      -- DNS names of the certificate in lower case; until there is one, those asked for.
      names text[] not null,
      -- Names that the next issue covers; null for uploads.
      requested_names text[],
      source text not null check (source in ('upload', 'acme')),
      -- Of the last issue: material of before stays valid when a renewal fails.
      status text not null check (status in ('pending', 'issuing', 'ready', 'error')),
      -- The material, all or nothing. SHA-256 of the leaf; DER, leaf first; sealed PKCS #8 in DER.
      fingerprint bytea check (octet_length(fingerprint) = 32),
      chain bytea[],
      private_key text,
      issuer text,
      key_type text,
      not_before timestamptz,
      not_after timestamptz,
      auto_renew boolean not null default false,
      renew_at timestamptz,
      -- A code, never what an authority wrote.
      last_error text,
      bind_site_id text references site on delete set null,
      -- What an authority is asked for and how; null for uploads.
      request jsonb,
      created_at timestamptz not null default now(),
      updated_at timestamptz not null default now(),
      check (source = 'acme' or fingerprint is not null),
      check (num_nulls(fingerprint, chain, private_key, issuer, key_type, not_before, not_after) in (0, 7)),
      check ((source = 'acme') = (requested_names is not null))
    );
    create index certificate_ending on certificate (not_after) where not_after is not null;
    create index certificate_due on certificate (renew_at) where renew_at is not null;
    -- One request at a time that a site is to get.
    create unique index certificate_binding on certificate (bind_site_id) where bind_site_id is not null;

    -- A site without a row has the defaults: HTTP only. settings: the objects of the contract, complete.
    create table site_https (
      site_id text primary key references site on delete cascade,
      cluster_id text not null references cluster,
      https jsonb not null,
      compression jsonb not null,
      updated_at timestamptz not null
    );
    create index site_https_cluster on site_https (cluster_id, site_id);

    -- Certificates that the settings name, in their order.
    create table site_certificate (
      site_id text not null references site_https on delete cascade,
      position smallint not null check (position between 0 and 3),
      certificate_id text not null references certificate,
      primary key (site_id, position),
      unique (certificate_id, site_id)
    );

    -- Entries that nodes run, by the certificates that they name.
    create index config_entry_certificates on config_entry using gin (refs)
      where to_revision is null and kind = 'site-https';
  `);
}
