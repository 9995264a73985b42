import type { Tx } from './write.ts';

/** Topics of the outbox: whose actor is to look again at what; `live`: what is shown in the Web UI. */
export type OutboxTopic = 'config' | 'bans' | 'publish' | 'live';

/** Key of an outbox row that concerns every cluster. */
export const ALL_CLUSTERS = '*';

/** Leaves a wake-up to be relayed after the commit: a pointer, never data. */
export async function wake(tx: Tx, topic: OutboxTopic, clusterId: string): Promise<void> {
  await tx.sql('outbox').insert({ topic, key: clusterId });
  tx.wake = true;
}
