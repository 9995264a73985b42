// What is known of one client, found by its address without reading what is known of others.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    create index security_event_address on security_event (address, occurred_at desc, id desc) where address is not null;
    create index security_heavy_address on security_heavy (value, minute desc) where kind = 'address';
  `);
}
