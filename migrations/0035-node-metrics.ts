// What nodes said of their machines, by minute, for a day.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    create table node_metrics_minute (
      node_id text not null references node(id) on delete cascade,
      minute timestamptz not null,
      cpu_percent float8 not null,
      load1 float8 not null,
      memory_used_bytes bigint not null,
      memory_total_bytes bigint not null,
      egress_bps bigint not null,
      active_connections bigint not null,
      primary key (node_id, minute)
    );
    create index node_metrics_minute_age on node_metrics_minute (minute);
  `);
}
