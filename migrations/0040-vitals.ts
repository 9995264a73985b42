// Which sites just changed and are watched, and how they fare on nodes with the change and on nodes without.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- site_id '' is all traffic of the nodes. origins: the change touched origins or routing of the site.
    create table vital_watch (
      cluster_id text not null references cluster on delete cascade,
      site_id text not null,
      revision bigint not null,
      track text not null check (track in ('S', 'C')),
      origins boolean not null,
      since timestamptz not null,
      until timestamptz not null,
      primary key (cluster_id, site_id, revision)
    );
    create index vital_watch_age on vital_watch (until);

    -- Sums of what nodes reported in 5 seconds by the console's clock, of one track and revision. Each process writes its
    -- own rows. Worth an hour and no longer, so a crash of the server may take it.
    create unlogged table vital (
      cluster_id text not null,
      slot timestamptz not null,
      site_id text not null,
      track text not null check (track in ('S', 'C')),
      revision bigint not null,
      writer text not null,
      nodes integer not null,
      requests bigint not null,
      origin_5xx bigint not null,
      edge_5xx bigint not null,
      -- Those of edge_5xx by the code of X-Svc-Error.
      edge_codes jsonb not null,
      -- Of the rows of site '': data planes that were started again, and entries that newly fail.
      restarts integer not null,
      failed integer not null,
      primary key (cluster_id, slot, site_id, track, revision, writer)
    );
    create index vital_age on vital (slot);
  `);
}
