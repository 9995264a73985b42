// Lists of sites sorted by name or last change read the page, not the table.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    create index site_by_name on site (lower(name), id);
    create index site_by_change on site (updated_at, id);
  `);
}
