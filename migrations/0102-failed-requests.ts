// Failed requests of minutes, so that whoever looks for sites that fail reads no others.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- Responses with status 5xx.
    alter table usage_minute add column failed bigint not null default 0;
    create index usage_minute_failed on usage_minute (minute, site_id) where failed > 0;
  `);
}
