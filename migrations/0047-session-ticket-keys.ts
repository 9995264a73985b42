// Keys of TLS session tickets that the nodes of a cluster share.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- rotated_at: when the version began.
    create table session_ticket_key_set (
      cluster_id text primary key references cluster on delete cascade,
      version bigint not null,
      rotated_at timestamptz not null
    );
    -- secret: sealed under the master key.
    create table session_ticket_key (
      id text primary key,
      cluster_id text not null references session_ticket_key_set on delete cascade,
      role text not null check (role in ('next', 'current', 'previous')),
      secret text not null,
      -- Roles move in one statement.
      unique (cluster_id, role) deferrable
    );

    -- Version of the keys that the node said it holds; 0 = none.
    alter table node_state add column session_ticket_keys_version bigint not null default 0;
  `);
}
