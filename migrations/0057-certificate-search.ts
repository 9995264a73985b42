// Certificates are found and sorted without reading all of them.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- array_to_string is called stable for elements whose text depends on settings; that of texts does not.
    create function certificate_search_text(name text, names text[]) returns text language sql immutable parallel safe
      return lower(name || e'\\n' || array_to_string(names, e'\\n'));
    alter table certificate add column search_text text not null
      generated always as (certificate_search_text(name, names)) stored;
    create index certificate_search on certificate using gin (search_text gin_trgm_ops);

    create index certificate_by_name on certificate (lower(name), id);
    create index certificate_by_end on certificate (not_after, id);
    drop index certificate_ending;
  `);
}
