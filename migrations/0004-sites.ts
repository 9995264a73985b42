import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- origins, settings: the objects of the contract. domain_text: every domain, for search.
    create table site (
      id text primary key default uuidv7()::text,
      cluster_id text not null references cluster,
      name text not null,
      enabled boolean not null default true,
      origins jsonb not null,
      origin_settings jsonb not null,
      content_settings jsonb not null,
      ports jsonb not null,
      search_text text not null,
      created_at timestamptz not null default now(),
      updated_at timestamptz not null default now()
    );
    create index site_cluster on site (cluster_id, id desc);
    create index site_search on site using gin (search_text gin_trgm_ops);

    -- Unique console-wide per (name, form). form: exact, wildcard, suffix, pattern; name without its marker.
    create table site_domain (
      site_id text not null references site on delete cascade,
      position integer not null,
      form text not null check (form in ('exact', 'wildcard', 'suffix', 'pattern')),
      name text not null,
      primary key (site_id, position),
      constraint site_domain_unique unique (form, name)
    );

    create table ip_list (
      id text primary key default uuidv7()::text,
      name text not null unique,
      kind text not null check (kind in ('collection', 'allow', 'block')),
      entry_count integer not null default 0,
      created_at timestamptz not null default now(),
      updated_at timestamptz not null default now()
    );
    -- chunk: the published chunk the entry travels in, a hash of its text.
    create table ip_list_entry (
      ip_list_id text not null references ip_list on delete cascade,
      chunk smallint not null check (chunk between 0 and 63),
      cidr cidr not null,
      primary key (ip_list_id, chunk, cidr)
    );
    create index ip_list_entry_cidr on ip_list_entry using gist (cidr inet_ops);
  `);
}
