// What is looked for among few rows is not looked for among all: who uses a port, and the latest certificate asked for.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- Sites that nodes serve on ports of their own.
    create index config_entry_ports on config_entry (cluster_id)
      where to_revision is null and kind = 'site' and features @> '{edge-ports-v1}'::text[];

    create index certificate_ordered on certificate (id) where source = 'acme';
  `);
}
