// Orders that have begun are gone on with before others begin, and one whose account the authority has forgotten begins
// again once.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    drop index acme_order_due;
    create index acme_order_due on acme_order (urgent desc, (state = 'check'), next_at) where next_at is not null;
    -- Those that somebody waits for are found among any number that are due.
    create index certificate_due_urgent on certificate (renew_at)
      where renew_at is not null and (fingerprint is null or status = 'pending');

    -- The account was made anew for it.
    alter table acme_order add column reopened boolean not null default false;
  `);
}
