// Tasks for nodes.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- A task is open until finished_at. attempts counts how often it was taken; leased_until is the end of the last lease.
    create table node_task (
      id text primary key,
      node_id text not null references node on delete cascade,
      kind text not null,
      input bytea not null check (length(input) <= 16384),
      lease_ms integer not null,
      created_at timestamptz not null default now(),
      expires_at timestamptz not null,
      attempts integer not null default 0,
      leased_until timestamptz,
      finished_at timestamptz,
      code text,
      output bytea check (length(output) <= 16384),
      check ((finished_at is null) = (code is null))
    );
    create index node_task_open on node_task (node_id, created_at) where finished_at is null;
    create index node_task_finished on node_task (finished_at) where finished_at is not null;
  `);
}
