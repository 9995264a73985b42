// Rows of the outbox: wake-ups, left in the transaction of a change and told after its commit.
import type { Knex } from 'knex';
import { LIVE } from '../models/db/live-hint.ts';
import { named, prepared } from '../models/db/named-statement.ts';
import type { Feeds } from '../runtime/feeds.ts';

/** Key of an outbox row that concerns every cluster. */
export const ALL_CLUSTERS = '*';

export interface OutboxRow {
  topic: string;
  key: string;
}

/** Topics that a relay with these feeds can tell of. */
export function knownTopics(feeds: Feeds): string[] {
  return [LIVE, ...feeds.topics];
}

/**
 * Takes up to `limit` of the oldest rows of the topics that no other relay holds: they are gone with the commit. Rows of
 * other topics stay for a relay of the version that writes them.
 */
export async function takeRows(sql: Knex, topics: readonly string[], limit: number): Promise<OutboxRow[]> {
  return prepared(sql, 'outbox-take', {
    text: `delete from outbox where id in (
       select id from outbox where topic = any(?) order by id limit ? for update skip locked)
     returning topic, key`,
    bindings: [topics, limit],
  });
}

/** Whether there are rows of the topics, whoever holds them: a look that costs less than taking none. */
export async function hasRows(sql: Knex, topics: readonly string[]): Promise<boolean> {
  const text = 'select exists (select from outbox where topic = any($1)) as waiting';
  const [row] = await named<{ waiting: boolean }>(sql, 'outbox-waiting', text, [topics]);
  return row!.waiting;
}

/** How many rows of each other topic there are, twenty topics at most. */
export async function countUnknown(sql: Knex, topics: readonly string[]): Promise<Map<string, number>> {
  const { rows } = await sql.raw<{ rows: { topic: string; count: number }[] }>(
    'select topic, count(*)::int as count from outbox where topic <> all(?) group by topic order by topic limit 20',
    [topics as never],
  );
  return new Map(rows.map(({ topic, count }) => [topic, count]));
}

/** Takes up to `limit` rows of other topics that have waited for that long: no relay of this installation knows them. */
export async function takeForgotten(
  sql: Knex,
  topics: readonly string[],
  ageSeconds: number,
  limit: number,
): Promise<OutboxRow[]> {
  const { rows } = await sql.raw<{ rows: OutboxRow[] }>(
    `delete from outbox where id in (
       select id from outbox where topic <> all(?) and created_at < now() - make_interval(secs => ?)
        order by id limit ? for update skip locked)
     returning topic, key`,
    [topics as never, ageSeconds, limit],
  );
  return rows;
}
