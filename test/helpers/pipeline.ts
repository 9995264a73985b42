// The change pipeline without the rest of the console: a database, a key prefix, a runtime, and a kind of entries that
// is compiled from a table of the test, so that histories can be driven without any resource's rules.
import { createHash, randomBytes } from 'node:crypto';
import type { Knex } from 'knex';
import pino from 'pino';
import { nextBanSeq, recordBanChange } from '../../models/bans/ban-numbers.ts';
import { createCluster } from '../../models/clusters/create-cluster.ts';
import type { EntryKind } from '../../models/config/entry-kind.ts';
import { ENTRY_KINDS } from '../../models/config/entry-kinds.ts';
import { publish } from '../../models/config/publish.ts';
import type { Entry } from '../../proto/gen/svc/config/v1/entry_pb.js';
import { systemCall } from '../../runtime/call.ts';
import { createRuntime } from '../../runtime/create-runtime.ts';
import { parseEnv } from '../../runtime/env.ts';
import type { Feed } from '../../runtime/feeds.ts';
import { KeyedQueue } from '../../runtime/keyed-queue.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { type Tx, write } from '../../runtime/write.ts';
import { discoverFeeds } from '../../services/discover.ts';
import { eventually } from './eventually.ts';
import { createTestDatabase, redisPrefix, type Servers, servers } from './servers.ts';

export const THING = 'test-thing';
const HOUR_MS = 3_600_000;

export interface ThingKind extends EntryKind {
  compilerVersion: number;
}

/** The kind of the test's entries; `compilerVersion` may be changed by a test. */
export const thingKind: ThingKind = {
  kind: THING,
  compilerVersion: 1,
  bypass: false,
  onRollback: 'restore',
  scope: 'cluster',
  ownerOf: (id) => (id.includes('/') ? id.split('/')[0]! : null),
  async compile(sql, clusterId, ids) {
    const { rows } = await sql.raw<{
      rows: { id: string; body: Buffer; features: string[]; settings: object | null }[];
    }>("select id, body, features, settings from test_thing where cluster_id in (?, '*') and id = any(?)", [
      clusterId,
      ids as never,
    ]);
    return new Map(
      rows.map(({ id, body, features, settings }) => [
        id,
        { body, features, refs: [], ...(settings ? { settings } : {}) },
      ]),
    );
  },
  async *list(sql, clusterId) {
    const { rows } = await sql.raw<{ rows: { id: string }[] }>(
      "select id from test_thing where cluster_id in (?, '*') order by id",
      [clusterId],
    );
    yield rows.map(({ id }) => id);
  },
};

export interface Thing {
  id: string;
  /** Null deletes it. */
  body: string | Buffer | null;
  features?: string[];
  /** What the entry was compiled from. */
  settings?: object;
}

export interface Pipeline {
  runtime: Runtime;
  /** A second process on the same database and streams. */
  another(): Promise<Pipeline>;
  close(): Promise<void>;
}

export interface PipelineOptions {
  servers?: Servers;
  databaseUrl?: string;
  prefix?: string;
  env?: Record<string, string>;
  /** Besides those of the services. */
  feeds?: readonly Feed[];
}

export async function createPipeline(options: PipelineOptions = {}): Promise<Pipeline> {
  if (!ENTRY_KINDS.includes(thingKind)) (ENTRY_KINDS as EntryKind[]).push(thingKind);
  const given = options.servers ?? (await servers());
  const database = options.databaseUrl ? null : await createTestDatabase(given);
  const databaseUrl = options.databaseUrl ?? database!.url;
  const prefix = options.prefix ?? redisPrefix();
  const masterKey = options.env?.SVC_MASTER_KEY ?? randomBytes(32).toString('base64');
  const env = parseEnv({
    DATABASE_URL: databaseUrl,
    REDIS_URL: given.redisUrl,
    SVC_REDIS_PREFIX: prefix,
    SVC_MASTER_KEY: masterKey,
    SVC_PUBLIC_URL: 'http://localhost:3000',
    ...options.env,
  });
  const stopping = new AbortController();
  const { runtime, close } = createRuntime(env, pino({ level: 'silent' }), stopping.signal, [
    ...(await discoverFeeds()),
    ...(options.feeds ?? []),
  ]);
  await runtime.pools.api.raw(
    `create table if not exists test_thing (
       cluster_id text, id text, body bytea not null, features text[] not null, settings jsonb, primary key (cluster_id, id))`,
  );
  await eventually(() => runtime.redis.status === 'ready', { what: 'the connection to Redis' });
  return {
    runtime,
    another: () =>
      createPipeline({
        ...options,
        servers: given,
        databaseUrl,
        prefix,
        env: { ...options.env, SVC_MASTER_KEY: masterKey },
      }),
    close: async () => {
      stopping.abort();
      await close();
      await database?.drop();
    },
  };
}

/** A write as an action does it; answers the output and the changes it announced. */
export async function change<T>(
  runtime: Runtime,
  work: (tx: Tx) => Promise<T>,
  options: { clusterId?: string; pool?: 'api' | 'bans' } = {},
): Promise<{ output: T; changes: string[] }> {
  const call = systemCall('test');
  const output = await write(runtime, call, options, work);
  return { output, changes: call.changes };
}

const creations = new KeyedQueue();

/** A new cluster; one after the other, because creations lock each other out and tests of a file run together. */
export async function addCluster(runtime: Runtime): Promise<string> {
  const name = `c${randomBytes(5).toString('hex')}`;
  return creations.run(runtime.env.databaseUrl, async () => {
    return (await change(runtime, (tx) => createCluster(tx, runtime.sealer, { name }))).output;
  });
}

export async function saveThings(sql: Knex, clusterId: string, things: readonly Thing[]): Promise<void> {
  const gone = things.filter(({ body }) => body === null).map(({ id }) => id);
  await sql('test_thing').where({ cluster_id: clusterId }).whereIn('id', gone).delete();
  // The last one of an id counts.
  const kept = new Map(things.filter(({ body }) => body !== null).map((thing) => [thing.id, thing]));
  const rows = [...kept.values()].map(({ id, body, features = [], settings = null }) => {
    return { cluster_id: clusterId, id, body: Buffer.from(body!), features, settings };
  });
  if (rows.length > 0) await sql('test_thing').insert(rows).onConflict(['cluster_id', 'id']).merge();
}

/** Saves things of a cluster and publishes them; answers the revision. */
export async function publishThings(
  runtime: Runtime,
  clusterId: string,
  things: readonly Thing[],
): Promise<string | null> {
  const { output } = await change(
    runtime,
    async (tx) => {
      await saveThings(tx.sql, clusterId, things);
      const entries = things.map(({ id }) => ({ kind: THING, id }));
      return publish(tx, { clusterId, entries, reason: 'test' });
    },
    { clusterId },
  );
  return output;
}

/** Bans an address (again); answers the feed number. `clusterId` null = everywhere. */
export async function ban(runtime: Runtime, id: string, cidr: string, clusterId: string | null): Promise<string> {
  const expiresAt = new Date(Date.now() + HOUR_MS);
  return feedChange(runtime, id, clusterId, async (tx, seq) => {
    await tx
      .sql('ban')
      .insert({
        id,
        scope: clusterId === null ? 'platform' : 'site',
        site_id: clusterId === null ? null : `site-${id}`,
        cluster_id: clusterId,
        cidr,
        reason: 'abuse',
        source: 'manual',
        expires_at: expiresAt,
        seq,
      })
      .onConflict('id')
      .merge({ expires_at: expiresAt, lifted_at: null, seq });
  });
}

export async function lift(runtime: Runtime, id: string, clusterId: string | null): Promise<string> {
  return feedChange(runtime, id, clusterId, async (tx, seq) => {
    await tx.sql('ban').where({ id }).update({ lifted_at: tx.now, seq });
  });
}

async function feedChange(
  runtime: Runtime,
  banId: string,
  clusterId: string | null,
  save: (tx: Tx, seq: string) => Promise<void>,
): Promise<string> {
  const { output } = await change(
    runtime,
    async (tx) => {
      const number = await nextBanSeq(tx);
      await save(tx, number.seq);
      await recordBanChange(tx, { banId, clusterId, keepUntil: new Date(Date.now() + 2 * HOUR_MS), number });
      return number.seq;
    },
    { pool: 'bans' },
  );
  return output;
}

/** Hash of a thing's body, so that a failed comparison stays readable. */
export function digest(body: Uint8Array): string {
  return createHash('sha256').update(body).digest('hex').slice(0, 12);
}

/** Digests by id of the things a cluster's nodes should hold, from the rows themselves. */
export async function expectedThings(runtime: Runtime, clusterId: string): Promise<Record<string, string>> {
  const rows = (await runtime.pools.api('test_thing').whereIn('cluster_id', [clusterId, '*'])) as {
    id: string;
    body: Buffer;
  }[];
  return Object.fromEntries(rows.map(({ id, body }) => [id, digest(body)]));
}

/** The same of what a node holds, without the entries that every cluster has. */
export function heldThings(entries: ReadonlyMap<string, Entry>): Record<string, string> {
  const own = [...entries.values()].filter(({ kind }) => kind === THING);
  return Object.fromEntries(own.map(({ id, body }) => [id, digest(body)]));
}

export async function expectedBans(runtime: Runtime, clusterId: string): Promise<string[]> {
  const rows = (await runtime.pools
    .api('ban')
    .whereNull('lifted_at')
    .where((query) => query.whereNull('cluster_id').orWhere('cluster_id', clusterId))
    .orderBy('id')
    .select('id')) as { id: string }[];
  return rows.map(({ id }) => id);
}
