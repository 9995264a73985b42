// Long jobs and their files.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- lease: who works on the job, until leased_until. position: where the next piece continues; null is the beginning.
    create table long_job (
      id text primary key,
      kind text not null,
      input jsonb not null,
      actor_type text not null,
      actor_id text,
      actor_name text not null,
      state text not null default 'waiting' check (state in ('waiting', 'running', 'done', 'failed', 'cancelled')),
      progress integer not null default 0 check (progress between 0 and 100),
      position text,
      parts integer not null default 0,
      bytes bigint not null default 0,
      failures integer not null default 0,
      problem text,
      file_name text,
      lease text,
      leased_until timestamptz,
      worked_at timestamptz,
      created_at timestamptz not null default now(),
      finished_at timestamptz,
      expires_at timestamptz,
      check ((state in ('done', 'failed', 'cancelled')) = (finished_at is not null))
    );
    create index long_job_open on long_job (created_at) where finished_at is null;
    create index long_job_listed on long_job (created_at, id);
    -- body: gzip.
    create table long_job_part (
      job_id text not null references long_job on delete cascade,
      number integer not null,
      body bytea not null,
      primary key (job_id, number)
    );
  `);
}
