// Bans that nodes held when a restored database took their place, and that it lacks.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- id: of the ban that is gone. nodes: how many of them held it when the epoch began.
    create table lost_ban (
      id text primary key,
      epoch bigint not null,
      site_id text,
      cidr cidr not null,
      source text not null check (source in ('manual', 'auto')),
      reason text not null,
      created_at timestamptz not null,
      expires_at timestamptz not null,
      nodes integer not null,
      reported_at timestamptz not null
    );
    create index lost_ban_newest on lost_ban (created_at desc, id desc);
    create index lost_ban_expiry on lost_ban (expires_at);
    -- Which nodes have said what an epoch took from them: a report that comes again counts once. unnamed: how many bans it did
    -- not name, or found no room for.
    create table lost_ban_report (
      epoch bigint not null,
      node_id text not null,
      unnamed integer not null,
      reported_at timestamptz not null,
      primary key (epoch, node_id)
    );
    create index lost_ban_report_age on lost_ban_report (reported_at);
  `);
}
