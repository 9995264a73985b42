// Since when sites have the mode of the WAF that they have.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- Of what was saved before, the last save is the latest time at which the mode can have changed.
    alter table site_waf add column mode_since timestamptz;
    update site_waf set mode_since = updated_at;
    alter table site_waf alter column mode_since set not null;
  `);
}
