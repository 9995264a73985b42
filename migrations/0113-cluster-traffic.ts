// Statistics of clusters: sums beside those of sites, nodes and all sites, and top lists under the id of the cluster.
import type { Knex } from 'knex';

const TABLES = ['traffic_mark', 'traffic_minute', 'traffic_window', 'traffic_hour', 'traffic_day'];

export async function up(trx: Knex.Transaction): Promise<void> {
  for (const table of TABLES) {
    // Rows of before have other kinds: none of them is looked at.
    await trx.raw(`
      do $$ declare name text; begin
        for name in select conname from pg_constraint
          where conrelid = '${table}'::regclass and contype = 'c' and pg_get_constraintdef(oid) like '%kind%' and coninhcount = 0
        loop execute format('alter table ${table} drop constraint %I', name); end loop;
      end $$;
      alter table ${table} add constraint ${table}_of_kind check (kind in ('all', 'cluster', 'node', 'site')) not valid;
    `);
  }
}
