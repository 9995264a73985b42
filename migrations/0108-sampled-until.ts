// Sites whose sampling has an end.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  // Times are saved in one form, so that their texts are in the order of time.
  await trx.raw(`
    create index site_logs_sampled_until on site_logs ((settings->>'sampleUntil'))
      where settings->>'sampleUntil' is not null
  `);
}
