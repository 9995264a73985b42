// Rows of the outbox that no feed here has the topic of. While versions are side by side they wait for a relay of the newer
// one; a row that nobody has taken after an hour is set aside, so that the outbox stays small. A row is a pointer: the
// owner of its feed finds by itself what it was about.

import { pipelineMetrics } from '../runtime/pipeline-metrics.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { deadLetterStream } from '../runtime/stream-names.ts';
import { DEAD_LETTERS } from '../runtime/work-stream.ts';
import { countUnknown, knownTopics, takeForgotten } from './outbox.ts';

const KEPT_SECONDS = 3600;
const BATCH = 1000;

/** Looks after them for one relay. */
export class UnknownTopics {
  readonly #runtime: Runtime;
  #told = '';

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** Measures them, logs what is new, sets aside what is too old. Throws when PostgreSQL or Redis fails. */
  async look(keptSeconds = KEPT_SECONDS): Promise<void> {
    const { pools, feeds, metrics, log } = this.#runtime;
    const known = knownTopics(feeds);
    const found = await countUnknown(pools.bans, known);
    const { unknownRows } = pipelineMetrics(metrics);
    unknownRows.reset();
    for (const [topic, count] of found) unknownRows.set({ topic }, count);
    const topics = [...found.keys()];
    if (topics.length > 0 && topics.join() !== this.#told) {
      log.error({ topics }, 'outbox contains topics without a feed in this process, rows kept');
    }
    this.#told = topics.join();
    if (topics.length > 0) await this.#setAside(known, keptSeconds);
  }

  async #setAside(known: readonly string[], keptSeconds: number): Promise<void> {
    const { pools, redis, env, metrics, log } = this.#runtime;
    await pools.bans.transaction(async (sql) => {
      const rows = await takeForgotten(sql, known, keptSeconds, BATCH);
      if (rows.length === 0) return;
      const pipeline = redis.pipeline();
      for (const { topic, key } of rows) {
        const fields = ['s', 'outbox', 'topic', topic, 'k', key];
        pipeline.xadd(deadLetterStream(env.redisPrefix), 'MAXLEN', DEAD_LETTERS, '*', ...fields);
      }
      for (const [error] of (await pipeline.exec()) ?? []) if (error) throw error;
      pipelineMetrics(metrics).deadLetters.inc(rows.length);
      log.error({ rows: rows.length }, 'outbox rows of unknown topics set aside');
    });
  }
}
