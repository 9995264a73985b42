// What the functions of a console run on, in the benchmark's own process: its stores, without fsync, and no services.
import { setTimeout as sleep } from 'node:timers/promises';
import pino from 'pino';
import { startTestStores, type TestStores } from '../../bin/lib/test-stores.ts';
import { migrate } from '../../migrations/run.ts';
import { createRuntime } from '../../runtime/create-runtime.ts';
import { parseEnv } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';

export interface BenchRuntime {
  stores: TestStores;
  runtime: Runtime;
  /** Of the runtime: for other processes on the same stores. */
  env: Record<string, string>;
  stop(): Promise<void>;
}

/** Starts stores that are named after the benchmark, with the present schema, and connects to them. `more`: variables. */
export async function startBenchRuntime(name: string, more: Record<string, string> = {}): Promise<BenchRuntime> {
  const stores = await startTestStores(`${name}-${process.pid}`);
  const stopping = new AbortController();
  await migrate(stores.postgres.url);
  const variables = {
    DATABASE_URL: stores.postgres.url,
    REDIS_URL: stores.redis.url,
    SVC_MASTER_KEY: Buffer.alloc(32, 1).toString('base64'),
    SVC_PUBLIC_URL: 'http://localhost:3000',
    ...more,
  };
  const env = parseEnv(variables);
  const { runtime, close } = createRuntime(env, pino({ level: 'silent' }), stopping.signal);
  while (runtime.redis.status !== 'ready') await sleep(10);
  return {
    stores,
    runtime,
    env: variables,
    async stop() {
      stopping.abort();
      await close();
      await stores.stop();
    },
  };
}
