// Preloaded into a console: counts statements by pool and by text, Redis commands by name and timers, and profiles the
// console on request. The parent asks over the channel between parent and child.
import { Session } from 'node:inspector/promises';
import { isMainThread } from 'node:worker_threads';
import { Redis } from 'ioredis';
import pg from 'pg';
import { partsOf } from './parts.ts';

export interface Counts {
  /** By pool. */
  pools: Record<string, number>;
  /** By pool and beginning of the text. */
  statements: Record<string, number>;
  /** By name. */
  commands: Record<string, number>;
  timers: number;
}

/** From the parent. */
export type Question = 'counts' | 'profile' | 'parts';
/** Of `counts` and of `parts`; `profile` is answered with null. */
export type Answer = Counts | Record<string, number> | null;

const TEXT_LENGTH = 90;

const counts: Counts = { pools: {}, statements: {}, commands: {}, timers: 0 };
const count = (of: Record<string, number>, name: string) => {
  of[name] = (of[name] ?? 0) + 1;
};

interface Connection {
  connectionParameters?: { application_name?: string };
}
const client = pg.Client.prototype as unknown as { query: (...args: unknown[]) => unknown };
const query = client.query;
client.query = function counted(this: Connection, ...args: unknown[]) {
  const pool = this.connectionParameters?.application_name ?? 'other';
  const [sent] = args as [string | { text?: string } | undefined];
  const text = (typeof sent === 'string' ? sent : sent?.text) ?? '';
  count(counts.pools, pool);
  count(counts.statements, `${pool}: ${text.replaceAll(/\s+/g, ' ').trim().slice(0, TEXT_LENGTH)}`);
  return query.apply(this, args);
};

const redis = Redis.prototype as unknown as { sendCommand: (command: { name: string }, ...rest: unknown[]) => unknown };
const send = redis.sendCommand;
redis.sendCommand = function counted(command, ...rest) {
  count(counts.commands, command.name);
  return send.call(this, command, ...rest);
};

const { setTimeout: start } = globalThis;
globalThis.setTimeout = Object.assign((...args: Parameters<typeof start>) => {
  counts.timers++;
  return start(...args);
}, start) as typeof start;

const session = new Session();
session.connect();

async function answer(question: Question): Promise<Answer> {
  switch (question) {
    case 'counts':
      return structuredClone(counts);
    case 'profile':
      await session.post('Profiler.enable');
      await session.post('Profiler.setSamplingInterval', { interval: 200 });
      await session.post('Profiler.start');
      return null;
    case 'parts': {
      const { profile } = await session.post('Profiler.stop');
      return partsOf(profile);
    }
  }
}

if (isMainThread)
  process.on('message', async (question: Question) => {
    process.send?.(await answer(question));
  });
// The channel alone keeps no console running.
process.channel?.unref();
