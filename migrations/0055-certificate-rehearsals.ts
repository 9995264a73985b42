// Orders of which nothing is kept.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- What its authority issues is checked and thrown away; the row goes a day later.
    alter table certificate add column rehearsal boolean not null default false,
      add constraint certificate_rehearsal_kept check (not rehearsal or (fingerprint is null and bind_site_id is null));
    create index certificate_rehearsal on certificate (updated_at) where rehearsal;
  `);
}
