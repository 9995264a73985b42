// Sites that were deleted and whose bans are still to be lifted: the deletion commits first and leaves a row here.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    create table gone_site (
      site_id text primary key,
      deleted_at timestamptz not null default now()
    );
    -- Reports that met a deletion could leave bans behind.
    insert into gone_site (site_id)
      select distinct b.site_id from ban b
       where b.site_id is not null and b.lifted_at is null and not exists (select from site s where s.id = b.site_id);
  `);
}
