// What the services of one process share. A process can hold several (tests do), so nothing of it is global.
import type { Redis } from 'ioredis';
import type { Knex } from 'knex';
import type { Pool } from 'pg';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { ConsoleEnv } from './env.ts';
import type { Feeds } from './feeds.ts';
import type { KeyedQueue } from './keyed-queue.ts';
import type { Listener } from './listener.ts';
import type { PacketCipher } from './packet-cipher.ts';
import type { PacketSeal } from './packet-seal.ts';
import type { Sealer } from './sealer.ts';

/** Connection pools, apart so that one kind of work cannot starve another. */
export interface Pools {
  /** Configuration CRUD through Objection and knex. */
  api: Knex;
  /** Jobs that are in no hurry: deletion by age, sums, compaction. */
  jobs: Knex;
  /** Ban writes and the relay. */
  bans: Knex;
  /** Node channel and actors: named statements. */
  channel: Pool;
  /** Vitals of nodes; the thread of counts has a connection of its own. */
  ingest: Pool;
}

export interface Runtime {
  env: ConsoleEnv;
  log: Logger;
  pools: Pools;
  /** Commands and PUBLISH. Blocking readers make their own with {@link Runtime.newRedis}. */
  redis: Redis;
  newRedis(): Redis;
  /** Envelope encryption under SVC_MASTER_KEY. */
  sealer: Sealer;
  /** What service folders registered. */
  feeds: Feeds;
  /** Of what travels through Redis and is believed. */
  seals: { broker: PacketSeal; fanout: PacketSeal };
  /** Of calls between processes. */
  cipher: PacketCipher;
  /** First come, first served per cluster, before a connection is borrowed. */
  publications: KeyedQueue;
  /** Metrics of this process, served by its internal listener. */
  metrics: Registry;
  /** Added to by services when they are created; opened after every service has started, closed before any stops. */
  listeners: Listener[];
  /** Aborted when the process begins to stop. */
  stopping: AbortSignal;
}
