// What certificate authorities are answered over HTTP, as a feed of each cluster, and where nodes are in it.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- Number of the cluster's last change; its lock makes the order of numbers that of commits.
    create table acme_head (
      cluster_id text primary key references cluster on delete cascade,
      seq bigint not null
    ) with (fillfactor = 50);
    -- seq: of its last change. One that was removed stays until nodes have forgotten it by themselves.
    create table acme_token (
      cluster_id text not null references cluster on delete cascade,
      host text not null,
      token text not null,
      key_authorization text not null,
      expires_at timestamptz not null,
      removed boolean not null default false,
      seq bigint not null,
      primary key (cluster_id, host, token)
    );
    create unique index acme_token_change on acme_token (cluster_id, seq);
    create index acme_token_age on acme_token (expires_at);

    -- Where the node said it is; nulls and zeros = nowhere.
    alter table node_state add column acme_epoch bigint, add column acme_sequence bigint;
  `);
}
