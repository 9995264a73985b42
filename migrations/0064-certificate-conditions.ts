// Certificates that could not be issued are found without reading the others; those that end are by certificate_by_end.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`create index certificate_failed on certificate (id) where status = 'error'`);
}
