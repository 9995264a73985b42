// Who works what: partitions, leader jobs, the relay and work streams, when processes and connections die.
import { getEventListeners } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import test from 'ava';
import { firstChoice, Partitions } from '../../pipeline/partitions.ts';
import { relayBatch, startRelay } from '../../pipeline/relay.ts';
import { Leader } from '../../runtime/leader.ts';
import { openLockSession, PoolerError } from '../../runtime/lock-session.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { deadLetterStream, PARTITION_COUNT, partitionOf, workStream } from '../../runtime/stream-names.ts';
import { type WorkMessage, WorkReader } from '../../runtime/work-stream.ts';
import banFeed from '../../services/ban-fanout/ban-fanout.feed.ts';
import configFeed from '../../services/revision-fanout/revision-fanout.feed.ts';
import { eventually } from '../helpers/eventually.ts';
import { addCluster, createPipeline, type Pipeline } from '../helpers/pipeline.ts';
import { privateServers } from '../helpers/servers.ts';
import { tcpProxy, throughProxy } from '../helpers/tcp-proxy.ts';

let pipeline: Pipeline;
let runtime: Runtime;

test.before(async () => {
  pipeline = await createPipeline();
  runtime = pipeline.runtime;
});
test.after.always(() => pipeline?.close());

const quiet = { onGained: () => undefined, onLost: () => undefined };
const all = [...Array(PARTITION_COUNT).keys()];

/** Ends the database sessions of a kind, as a crash or a dead link does. */
async function killSessions(name: string): Promise<number> {
  const { rowCount } = await runtime.pools.api.raw(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and starts_with(application_name, ?)`,
    [name],
  );
  return rowCount;
}

test.serial('two workers share all partitions, each owned once, and the one that is left takes them all', async (t) => {
  const first = new Partitions(runtime, configFeed, quiet);
  const second = new Partitions(runtime, configFeed, quiet);
  await first.start();
  await eventually(() => first.owned.size === PARTITION_COUNT);
  t.regex(await runtime.metrics.metrics(), /svc_partitions_owned\{feed="config"\} 64/);
  await second.start();
  await eventually(() => second.owned.size > 0 && first.owned.size + second.owned.size === PARTITION_COUNT);
  t.deepEqual(
    [...first.owned].filter((partition) => second.owned.has(partition)),
    [],
  );
  await first.stop();
  await eventually(() => second.owned.size === PARTITION_COUNT);
  await second.stop();
  t.is(second.owned.size, 0);
});

test.serial('a worker whose session dies owns nothing, then connects again', async (t) => {
  const lost: number[] = [];
  let sessions = 0;
  const partitions = new Partitions(runtime, banFeed, {
    onGained: () => undefined,
    onLost: (gone) => void lost.push(...gone),
    onSession: async () => void sessions++,
  });
  await partitions.start();
  await eventually(() => partitions.owned.size === PARTITION_COUNT);
  t.is(await killSessions('svc-bans-owner'), 1);
  await eventually(() => lost.length === PARTITION_COUNT);
  await eventually(() => partitions.owned.size === PARTITION_COUNT);
  t.is(sessions, 2);
  await partitions.stop();
});

test.serial('a worker whose link dies stops by itself, and the server gives its partitions to another', async (t) => {
  const link = await tcpProxy(runtime.env.databaseUrl);
  const behind = {
    ...runtime,
    env: { ...runtime.env, databaseDirectUrl: throughProxy(runtime.env.databaseUrl, link) },
  };
  const cutOff = new Partitions(behind, configFeed, quiet);
  const other = new Partitions(runtime, configFeed, quiet);
  try {
    await cutOff.start();
    await eventually(() => cutOff.owned.size === PARTITION_COUNT);
    link.freeze();
    // Nothing ends the connection: the check of the worker notices, and the server that nobody speaks any more.
    await eventually(() => cutOff.owned.size === 0);
    await cutOff.stop();
    await other.start();
    await eventually(() => other.owned.size === PARTITION_COUNT);
    t.pass();
  } finally {
    await cutOff.stop();
    await other.stop();
    await link.close();
  }
});

test('partitions are dealt evenly and a worker that leaves moves only its own', (t) => {
  const workers = ['w1', 'w2', 'w3', 'w4'];
  const before = all.map((partition) => firstChoice(partition, workers));
  for (const worker of workers) t.true(before.filter((choice) => choice === worker).length >= 4);
  const after = all.map((partition) => firstChoice(partition, workers.slice(1)));
  t.deepEqual(
    all.filter((partition) => before[partition] !== after[partition]),
    all.filter((partition) => before[partition] === 'w1'),
  );
  t.is(partitionOf('01a1fe6a-1b32-7db2-a060-930b75b5375d'), 54);
});

/** Forwards connections and gives the backend a process id of its own, as connection poolers do. */
async function poolerBefore(url: URL): Promise<{ server: Server; port: number; sockets: Set<Socket> }> {
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(Number(url.port), url.hostname);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
    }
    client.pipe(upstream);
    upstream.on('data', (data) => {
      // BackendKeyData: 'K', length 12, process id, secret.
      const at = data.indexOf(Buffer.from([0x4b, 0, 0, 0, 12]));
      if (at !== -1) data.writeInt32BE(4242, at + 5);
      client.write(data);
    });
    upstream.on('end', () => client.end());
    client.on('end', () => upstream.end());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, port: (server.address() as { port: number }).port, sockets };
}

test('locks behind a connection pooler are refused', async (t) => {
  const direct = new URL(runtime.env.databaseUrl);
  const { server, port, sockets } = await poolerBefore(direct);
  try {
    const behind = new URL(direct);
    behind.port = String(port);
    behind.hostname = '127.0.0.1';
    const pooled = { ...runtime, env: { ...runtime.env, databaseDirectUrl: behind.href } };
    await t.throwsAsync(openLockSession(pooled, 'svc-test'), { instanceOf: PoolerError });
    await t.throwsAsync(new Partitions(pooled, configFeed, quiet).start(), { instanceOf: PoolerError });
    await t.throwsAsync(new Leader(pooled, []).start(), { instanceOf: PoolerError });
  } finally {
    for (const socket of sockets) socket.destroy();
    server.close();
  }
});

test.serial('processes share the jobs, each job runs in one of them, and the one that is left runs all', async (t) => {
  const ran: string[] = [];
  const names = Array.from({ length: 40 }, (_, index) => `shared-${index}`);
  const jobs = (process: string) =>
    names.map((name) => ({
      name,
      everyMs: 1,
      run: async () => {
        ran.push(`${process} ${name}`);
        throw new Error('a job that fails runs again');
      },
    }));
  const seen = () => new Set(ran);
  const first = new Leader(runtime, jobs('first'));
  const second = new Leader(runtime, jobs('second'));
  await first.start();
  await eventually(() => seen().size === names.length);
  await second.start();
  await eventually(() => ran.some((entry) => entry.startsWith('second')));
  // From here on each job runs in the process that was chosen for it.
  await eventually(() => {
    ran.length = 0;
    return eventually(() => seen().size >= names.length).then(() => seen().size === names.length);
  });
  for (const process of ['first', 'second'])
    t.true(
      [...seen()].some((entry) => entry.startsWith(process)),
      process,
    );
  await first.stop();
  ran.length = 0;
  await eventually(() => seen().size === names.length);
  t.true([...seen()].every((entry) => entry.startsWith('second')));
  await second.stop();
});

test.serial('a job that does not end is told at its deadline, then given up, and runs again', async (t) => {
  const signals: AbortSignal[] = [];
  const run = (_: Runtime, signal: AbortSignal) => {
    signals.push(signal);
    return new Promise<void>(() => undefined);
  };
  const leader = new Leader(runtime, [{ name: 'endless', everyMs: 1, deadlineMs: 10, run }], 10);
  await leader.start();
  await eventually(() => signals.length >= 2);
  t.true(signals[0]!.aborted);
  await leader.stop();
});

test.serial('a job that has ended leaves nothing behind that a stop would wait for', async (t) => {
  const signals: AbortSignal[] = [];
  const run = async (_: Runtime, signal: AbortSignal) => void signals.push(signal);
  const leader = new Leader(runtime, [{ name: 'short', everyMs: 1, run }]);
  await leader.start();
  await eventually(() => signals.length >= 2);
  // The second run begins after the end of the first.
  const left = getEventListeners(signals[0]!, 'abort').length;
  await leader.stop();
  t.is(left, 0);
});

test.serial('jobs that are in no hurry have database connections of their own', async (t) => {
  const used = new Map<string, string>();
  const job = (name: string, everyMs: number) => ({
    name,
    everyMs,
    run: async ({ pools }: Runtime) => {
      const { rows } = await pools.api.raw("select current_setting('application_name') as name");
      used.set(name, rows[0].name);
    },
  });
  const leader = new Leader(runtime, [job('prompt', 2_000), job('hourly', 3_600_000)]);
  await leader.start();
  await eventually(() => used.size === 2);
  await leader.stop();
  t.deepEqual([used.get('prompt'), used.get('hourly')], ['svc-api', 'svc-jobs']);
});

test.serial('rows stay in the outbox while Redis is away, and arrive when it is back', async (t) => {
  const own = await privateServers();
  const there = await createPipeline({ servers: own });
  try {
    const { runtime: away } = there;
    const clusters = [await addCluster(away), await addCluster(away)];
    await away.pools.bans('outbox').delete();
    away.redis.disconnect();
    await away.pools.bans('outbox').insert([
      { topic: 'config', key: 'c1' },
      { topic: 'bans', key: '*' },
    ]);
    // Before the relay starts: it holds the rows while it tries, and another attempt passes over them.
    await t.throwsAsync(relayBatch(away));
    const relay = startRelay(away);
    t.is((await away.pools.bans('outbox')).length, 2);
    await away.redis.connect();
    await eventually(async () => (await away.pools.bans('outbox')).length === 0);
    const { redisPrefix } = away.env;
    t.is(await away.redis.xlen(workStream(redisPrefix, 'config', partitionOf('c1'))), 1);
    // What concerns all clusters goes to the partitions that have some.
    const concerned = new Set(clusters.map(partitionOf));
    for (const partition of all) {
      const messages = await away.redis.xlen(workStream(redisPrefix, 'bans', partition));
      t.is(messages, concerned.has(partition) ? 1 : 0);
    }
    await relay.stop();
  } finally {
    // Reconnected by hand, so the runtime does not know it any more.
    there.runtime.redis.disconnect();
    await there.close();
    await own.stop();
  }
});

test.serial('two relays at the same time move every row once', async (t) => {
  const other = await pipeline.another();
  try {
    const keys = Array.from({ length: 3000 }, (_, index) => ({ topic: 'config', key: `k${index}` }));
    await runtime.pools.bans.batchInsert('outbox', keys, 1000);
    let moved = 0;
    await Promise.all(
      [runtime, other.runtime, runtime, other.runtime].map(async (on) => {
        for (let count = await relayBatch(on); count > 0; count = await relayBatch(on)) moved += count;
      }),
    );
    // A relay that finds every row taken ends early; whoever held them moved them.
    t.is(moved, 3000);
    let messages = 0;
    for (const partition of all) {
      messages += await runtime.redis.xlen(workStream(runtime.env.redisPrefix, 'config', partition));
    }
    t.is(messages, 3000);
  } finally {
    await other.close();
  }
});

test.serial('a row that another relay holds delays nobody', async (t) => {
  const sql = runtime.pools.bans;
  await sql('outbox').delete();
  await sql('outbox').insert([
    { topic: 'config', key: 'held' },
    { topic: 'config', key: 'free' },
  ]);
  await sql.transaction(async (holder) => {
    await holder.raw("select 1 from outbox where key = 'held' for update");
    t.is(await relayBatch(runtime), 1);
  });
  t.is(await relayBatch(runtime), 1);
});

function reader(stream: string, consumer: string, handle: (message: WorkMessage) => Promise<void>): WorkReader {
  const options = { group: 'g', consumer, streams: () => [stream], handle, claimIdleMs: 50, claimEveryMs: 20 };
  return new WorkReader(runtime, options);
}

test('a message that always fails goes to the dead letters after five tries, others pass it', async (t) => {
  const stream = `${runtime.env.redisPrefix}test:dead`;
  const tries = new Map<string, number>();
  const worker = reader(stream, 'one', async ({ fields }) => {
    const name = fields.name!;
    tries.set(name, (tries.get(name) ?? 0) + 1);
    if (name === 'poison') throw new Error('cannot be handled');
  });
  worker.start();
  try {
    for (const name of ['first', 'poison', 'last']) await runtime.redis.xadd(stream, '*', 'name', name);
    const dead = await eventually(async () => {
      const letters = await runtime.redis.xrange(deadLetterStream(runtime.env.redisPrefix), '-', '+');
      return letters.find(([, fields]) => fields.includes(stream));
    });
    t.true(dead[1].includes('poison'));
    t.is(tries.get('poison'), 5);
    t.is(tries.get('last'), 1);
    await eventually(async () => /svc_dead_letters_total 1/.test(await runtime.metrics.metrics()));
    await eventually(async () => (await runtime.redis.xlen(stream)) === 0);
  } finally {
    await worker.stop();
  }
});

test('what a reader took and did not finish is read again by the same name at once, by another later', async (t) => {
  const stream = `${runtime.env.redisPrefix}test:again`;
  let started = 0;
  const stuck = reader(stream, 'one', () => {
    started++;
    return new Promise(() => undefined);
  });
  stuck.start();
  await runtime.redis.xadd(stream, '*', 'name', 'a');
  await eventually(() => started === 1);
  await stuck.stop();
  const seen: string[] = [];
  const again = reader(stream, 'one', async ({ fields }) => void seen.push(fields.name!));
  again.start();
  await eventually(() => seen.length === 1);
  await eventually(async () => (await runtime.redis.xpending(stream, 'g'))[0] === 0);
  await again.stop();

  const stuckToo = reader(stream, 'two', () => new Promise(() => undefined));
  stuckToo.start();
  await runtime.redis.xadd(stream, '*', 'name', 'b');
  await eventually(async () => (await runtime.redis.xpending(stream, 'g'))[0] === 1);
  await stuckToo.stop();
  const other = reader(stream, 'three', async ({ fields }) => void seen.push(fields.name!));
  other.start();
  await eventually(() => seen.includes('b'));
  await other.stop();
  t.deepEqual(seen, ['a', 'b']);
});

test('a reader goes on after Redis lost the stream and its group', async (t) => {
  const stream = `${runtime.env.redisPrefix}test:lost`;
  const seen: string[] = [];
  const worker = reader(stream, 'one', async ({ fields }) => void seen.push(fields.name!));
  worker.start();
  try {
    await runtime.redis.xadd(stream, '*', 'name', 'a');
    await eventually(() => seen.includes('a'));
    await runtime.redis.del(stream);
    await runtime.redis.xadd(stream, '*', 'name', 'b');
    await eventually(() => seen.includes('b'));
    t.pass();
  } finally {
    await worker.stop();
  }
});
