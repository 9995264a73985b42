// Hints for the Web UI: "look again at X", left in the outbox by whoever changes X, told after the commit. Written as
// `<topic> <id>`, or the topic alone where any of it may have changed.
import type { Knex } from 'knex';
import type { LiveTopic } from '../../contract/resources/live.ts';

/** Outbox topic of hints; every other topic is a feed's. */
export const LIVE = 'live';

/** Ids that one report of nodes names; of more, the topic alone. */
export const MAX_HINTED_NODES = 50;

export function hint(topic: LiveTopic, id?: string): string {
  return id === undefined ? topic : `${topic} ${id}`;
}

/** Leaves hints in the change's transaction. */
export async function leaveHints(sql: Knex, hints: Iterable<string>): Promise<void> {
  const rows = [...new Set(hints)].map((key) => ({ topic: LIVE, key }));
  if (rows.length > 0) await sql('outbox').insert(rows);
}
