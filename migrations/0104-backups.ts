// Backups that the console makes: what became of each.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    create table backup (
      id text primary key default uuidv7()::text,
      cause text not null check (cause in ('schedule', 'request')),
      state text not null check (state in ('waiting', 'running', 'done', 'failed')),
      phase text check (phase in ('write', 'verify')),
      progress integer not null default 0 check (progress between 0 and 100),
      problem text,
      folder text not null,
      file_name text,
      deleted_at timestamptz,
      bytes bigint,
      rows bigint,
      created_at timestamptz not null default now(),
      started_at timestamptz,
      -- Of the process that makes it; after it, that process is gone.
      leased_until timestamptz,
      ended_at timestamptz,
      check ((state in ('done', 'failed')) = (ended_at is not null)),
      check ((state = 'done') = (file_name is not null))
    );
    -- One at a time.
    create unique index backup_open on backup ((true)) where ended_at is null;
    create index backup_created on backup (created_at desc, id desc);
    create index backup_good on backup (started_at desc) where state = 'done';
  `);
}
