// Changes that were undone lately, of all clusters: the overview asks for them every two seconds.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    create index rollout_event_undone on rollout_event (at) where kind in ('undone', 'undo_stopped')
  `);
}
