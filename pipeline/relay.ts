// Moves wake-ups from the outbox to the work streams of their feeds, and tells the Web UI what they were about. Any number of
// relays run at the same time: rows are taken with SKIP LOCKED and deleted in the transaction that added them to Redis, so one can come twice but none is lost. With
// Redis away the rows stay.
import { hint, LIVE } from '../models/db/live-hint.ts';
import type { Feeds } from '../runtime/feeds.ts';
import { appendHints } from '../runtime/live-stream.ts';
import { pipelineMetrics } from '../runtime/pipeline-metrics.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { partitionOf, wakeChannel, workStream } from '../runtime/stream-names.ts';
import { Wakeable } from '../runtime/wakeable.ts';
import { boundedHints } from './live-events.ts';
import { ALL_CLUSTERS, hasRows, knownTopics, type OutboxRow, takeRows } from './outbox.ts';
import { UnknownTopics } from './unknown-topics.ts';

const BATCH = 1000;
const POLL_MS = 200;
const LONGEST_PAUSE_MS = 5_000;
/** Messages of a partition kept at most; a lost one is found again by the owner's comparison of heads. */
const MAX_MESSAGES = 10_000;
const UNKNOWN_EVERY_MS = 5_000;

export interface Relay {
  stop(): Promise<void>;
}

/** Starts relaying; ends with `stop`. */
export function startRelay(runtime: Runtime): Relay {
  const { log } = runtime;
  const wakeable = new Wakeable();
  const subscriber = runtime.newRedis();
  subscriber.on('message', () => wakeable.wake());
  subscriber
    .subscribe(wakeChannel(runtime.env.redisPrefix))
    .catch((err) => log.warn({ err }, 'relay gets no notifications, polling instead'));
  const unknown = new UnknownTopics(runtime);
  const topics = knownTopics(runtime.feeds);
  let lookAt = 0;
  let stopped = false;
  const loop = async () => {
    let pause = POLL_MS;
    let woken = false;
    while (!stopped) {
      try {
        const moved = woken || (await hasRows(runtime.pools.bans, topics)) ? await relayBatch(runtime) : 0;
        if (performance.now() >= lookAt) {
          lookAt = performance.now() + UNKNOWN_EVERY_MS;
          await unknown.look();
        }
        pause = POLL_MS;
        if (moved === BATCH) continue;
      } catch (err) {
        if (pause === POLL_MS) log.warn({ err }, 'relay failed, retrying');
        pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
      }
      // After a failure a wake-up must not defeat the pause.
      woken = await wakeable.sleep(pause, pause === POLL_MS);
    }
  };
  const running = loop();
  return {
    stop: async () => {
      stopped = true;
      wakeable.end();
      subscriber.disconnect();
      await running;
    },
  };
}

/** Relays up to 1,000 rows; answers how many. Throws with the rows untouched when PostgreSQL or Redis fails. */
export async function relayBatch(runtime: Runtime): Promise<number> {
  return runtime.pools.bans.transaction(async (sql) => {
    const rows = await takeRows(sql, knownTopics(runtime.feeds), BATCH);
    const forAll = rows.some(({ key }) => key === ALL_CLUSTERS);
    // A cluster that is created meanwhile begins with everything.
    const clusters = forAll ? ((await sql('cluster').pluck('id')) as string[]) : [];
    if (rows.length > 0) await addMessages(runtime, rows, new Set(clusters.map(partitionOf)));
    pipelineMetrics(runtime.metrics).relayed.inc(rows.length);
    return rows.length;
  });
}

/** `all`: the partitions that have clusters. */
async function addMessages(
  { redis, env, feeds }: Runtime,
  rows: readonly OutboxRow[],
  all: Iterable<number>,
): Promise<void> {
  const pipeline = redis.pipeline();
  const targets = new Set<string>();
  for (const { topic, key } of rows) {
    const feed = feeds.ofTopic(topic);
    // A hint for the Web UI alone.
    if (!feed) continue;
    const partitions = key === ALL_CLUSTERS ? all : [partitionOf(key)];
    for (const partition of partitions) {
      const stream = workStream(env.redisPrefix, feed.name, partition);
      // "Look again" once is as good as many times.
      if (targets.has(`${stream} ${key}`)) continue;
      targets.add(`${stream} ${key}`);
      pipeline.xadd(stream, 'MAXLEN', '~', MAX_MESSAGES, '*', 'k', key);
    }
  }
  const hints = boundedHints(rows.flatMap((row) => hintOf(feeds, row)));
  const [replies] = await Promise.all([
    pipeline.exec(),
    hints.length > 0 ? appendHints(redis, env.redisPrefix, hints) : undefined,
  ]);
  for (const [error] of replies ?? []) if (error) throw error;
}

/** What a row tells the Web UI; a published revision and a change of bans need no row of their own. */
function hintOf(feeds: Feeds, { topic, key }: OutboxRow): string[] {
  if (topic === LIVE) return [key];
  const told = feeds.ofTopic(topic)?.hint;
  return told ? [hint(told, key === ALL_CLUSTERS ? undefined : key)] : [];
}
