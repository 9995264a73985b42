// Bulk redirects of sites, a row each, with the chunk in which nodes get them. A source is the host, if any, and the
// decoded canonical path: its order is that of its bytes.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    create table bulk_redirect_set (
      site_id text primary key references site on delete cascade,
      updated_at timestamptz not null
    );

    create table bulk_redirect (
      site_id text not null references site on delete cascade,
      chunk smallint not null check (chunk between 0 and 255),
      source text collate "C" not null check (octet_length(source) between 2 and 512),
      target text not null check (octet_length(target) between 1 and 1024),
      status smallint not null check (status in (301, 302, 307, 308)),
      preserve_query boolean not null,
      primary key (site_id, chunk, source)
    );
  `);
}
