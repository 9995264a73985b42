import test, { type ExecutionContext } from 'ava';
import type { Fleet } from '../../bench/fleet/fleet.ts';
import type { FullStore } from '../../bench/fleet/node-store.ts';
import type { SimulatedNode } from '../../bench/fleet/simulated-node.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { connectAs, enrollOne, startTestFleet } from '../helpers/fleet.ts';
import { Api } from '../helpers/resources.ts';
import { privateServers } from '../helpers/servers.ts';

let running: TestConsole;
let api: Api;

test.before('start', async () => {
  running = await startTestConsole();
  api = new Api(running);
});
test.after.always('stop', () => running?.stop());

let last = 0;
/** Bans an address no other test uses; answers its number. */
async function ban(of = api): Promise<bigint> {
  last += 1;
  const answer = await of.call('POST', '/bans', {
    scope: 'platform',
    cidr: `198.19.${last >> 8}.${last & 255}`,
    reason: 'abuse',
    durationSeconds: 3600,
  });
  if (answer.status > 299) throw new Error(JSON.stringify(answer.body));
  return BigInt(answer.headers.get('x-svc-change')!.split(':')[1]!);
}

async function revision(clusterId: string, of = api): Promise<bigint> {
  return BigInt((await of.ok('GET', `/clusters/${clusterId}`)).latestRevision);
}

async function fleetOf(
  t: ExecutionContext,
  name: string,
  nodes: number,
  features?: string[],
): Promise<{ fleet: Fleet; clusterId: string }> {
  const clusterId = await api.cluster(name);
  const fleet = await startTestFleet(running, clusterId, nodes, features ? { features } : {});
  t.teardown(() => fleet.stop());
  return { fleet, clusterId };
}

const lacking = async (clusterId: string): Promise<string[]> => {
  const { items } = await api.ok('GET', `/nodes?clusterId=${clusterId}&lacks=domains-v2`);
  return items.map(({ name }: { name: string }) => name);
};
const pulls = (nodes: readonly SimulatedNode[]) => nodes.reduce((sum, node) => sum + node.counts.pulls, 0);
const idle = (fleet: Fleet) =>
  eventually(() => fleet.nodes.every((node) => node.config.revision > 0n && node.bans.epoch > 0n));

/** Every node holds exactly the bans the console enforces. */
async function sameBans(t: ExecutionContext, fleet: Fleet): Promise<void> {
  const rows = await api
    .sql('ban')
    .whereNull('lifted_at')
    .whereNull('site_id')
    .where('expires_at', '>', new Date())
    .select('id');
  const wanted = rows.map(({ id }) => id).sort();
  for (const node of fleet.nodes) t.deepEqual([...(node.store as FullStore).bans.keys()].sort(), wanted);
}

test.serial('bans and configuration are pushed: nodes that are connected need not ask', async (t) => {
  const { fleet, clusterId } = await fleetOf(t, 'pushed', 5);
  await idle(fleet);
  await fleet.waitForBans(await ban());
  const before = pulls(fleet.nodes);
  let sequence = 0n;
  for (let count = 0; count < 10; count++) {
    sequence = await ban();
    await api.site(clusterId, `pushed-${count}.example`);
  }
  await fleet.waitForBans(sequence);
  await fleet.waitForRevision(await revision(clusterId));
  t.is(pulls(fleet.nodes), before);
  await sameBans(t, fleet);
  const entries = (fleet.nodes[0]!.store as FullStore).entries;
  t.is([...entries.values()].filter(({ kind }) => kind === 'site').length, 10);
  t.is(fleet.received(sequence).filter((time) => time !== undefined).length, 5);
});

test.serial(
  'a node whose link breaks goes on where it was, without asking, while the ring holds what it missed',
  async (t) => {
    const { fleet } = await fleetOf(t, 'resumed', 2);
    await idle(fleet);
    await fleet.waitForBans(await ban());
    const [dropped] = fleet.nodes;
    const before = pulls(fleet.nodes);
    dropped!.drop();
    await eventually(() => !dropped!.connected);
    const sequence = await ban();
    await fleet.waitForBans(sequence);
    t.is(dropped!.counts.connections, 2);
    // The Target comes first and makes it look; the batch is the same either way.
    t.true(pulls(fleet.nodes) <= before + 1);
    await sameBans(t, fleet);
  },
);

test.serial('a node that stalls misses nothing and keeps nobody waiting', async (t) => {
  const { fleet } = await fleetOf(t, 'stalled', 3);
  await idle(fleet);
  const [stalled, ...others] = fleet.nodes;
  stalled!.stall(true);
  let sequence = 0n;
  for (let count = 0; count < 20; count++) sequence = await ban();
  await fleet.waitForBans(sequence, 30_000, others);
  stalled!.stall(false);
  await fleet.waitForBans(sequence);
  await sameBans(t, fleet);
});

test.serial('a node that comes back with nothing gets everything', async (t) => {
  const { fleet, clusterId } = await fleetOf(t, 'emptied', 1);
  await api.site(clusterId, 'emptied.example');
  await fleet.waitForRevision(await revision(clusterId));
  const [node] = fleet.nodes;
  node!.reset();
  await fleet.waitForRevision(await revision(clusterId));
  await fleet.waitForBans(await ban());
  await sameBans(t, fleet);
  t.is([...(node!.store as FullStore).entries.values()].filter(({ kind }) => kind === 'site').length, 1);
});

test.serial('a node that lacks a capability keeps its configuration, says so, and still gets bans', async (t) => {
  const { fleet, clusterId } = await fleetOf(t, 'lacking', 1, ['bans-v1']);
  await idle(fleet);
  const [node] = fleet.nodes;
  const before = node!.config.revision;
  await api.site(clusterId, '.suffix.example');
  await fleet.waitForBans(await ban());
  t.is(node!.config.revision, before);
  await node!.heartbeat();
  const shown = await eventually(async () => {
    const answer = await api.ok('GET', `/nodes/${node!.nodeId}`);
    return answer.upgradeRequired && answer;
  });
  t.deepEqual(shown.missingFeatures, ['domains-v2']);
  t.is(shown.applyState, 'applying');
  const connection = connectAs(running, await enrollOne(running, clusterId, []));
  t.teardown(() => connection.destroy());
  await t.throwsAsync(connection.call('getConfig', {}), { message: /failed_precondition.*domains-v2/ });
  // With the capability it is told and catches up.
  await connection.call('heartbeat', { info: { features: ['bans-v1', 'domains-v2'] } });
  t.is((await connection.call('getConfig', {})).result.case, 'page');
});

test.serial('a node that holds single entries receives everything and shows that it needs an upgrade', async (t) => {
  const features = ['bans-v1', 'partial-config-v1'];
  const { fleet, clusterId } = await fleetOf(t, 'holding', 1, features);
  await idle(fleet);
  const [node] = fleet.nodes;
  const { id } = await api.site(clusterId, '.held.example');
  await fleet.waitForRevision(await revision(clusterId));
  await node!.heartbeat();
  const shown = await eventually(async () => {
    const answer = await api.ok('GET', `/nodes/${node!.nodeId}`);
    return answer.upgradeRequired && answer;
  });
  t.deepEqual(shown.missingFeatures, ['domains-v2']);
  // What comes later arrives, too.
  await api.ok('PUT', `/sites/${id}/enabled`, { enabled: false });
  await fleet.waitForRevision(await revision(clusterId));
  // And so does everything, for a node that has nothing.
  node!.reset();
  await fleet.waitForRevision(await revision(clusterId));
  t.true([...(node!.store as FullStore).entries.values()].some((entry) => entry.id === id));

  // Upgraded, it runs what it held without another change, and says so with its next heartbeat.
  const { site } = await api.ok('PUT', `/sites/${id}/enabled`, { enabled: true });
  await fleet.waitForRevision(await revision(clusterId));
  const named = { nodes: [{ id: node!.nodeId, name: shown.name }] };
  t.like(site.delivery.blocked[0], {
    kind: 'site',
    reason: 'lacking',
    capabilities: ['domains-v2'],
    count: 1,
    ...named,
  });
  t.deepEqual(await lacking(clusterId), [shown.name]);
  const saved = await revision(clusterId);
  features.push('domains-v2');
  await node!.heartbeat();
  await eventually(async () => (await api.ok('GET', `/sites/${id}`)).delivery.state === 'live');
  t.like((await api.ok('GET', `/sites/${id}`)).delivery, { currentNodes: 1, servingNodes: 1, blocked: [] });
  t.like(await api.ok('GET', `/nodes/${node!.nodeId}`), { upgradeRequired: false, missingFeatures: [] });
  t.deepEqual(await lacking(clusterId), []);
  t.is(await revision(clusterId), saved);
});

test.serial('a second stream of a node ends the first', async (t) => {
  const identity = await enrollOne(running, await api.cluster('doubled'));
  const connection = connectAs(running, identity);
  t.teardown(() => connection.destroy());
  const ended = new Promise<string | undefined>((resolve) => {
    connection.watch(
      {},
      () => undefined,
      (reason) => resolve(reason?.code),
    );
  });
  await new Promise<void>((resolve) => {
    connection.watch(
      {},
      () => resolve(),
      () => undefined,
    );
  });
  t.is(await ended, 'aborted');
});

test.serial('two consoles on one database serve the same cluster', async (t) => {
  const clusterId = await api.cluster('two-consoles');
  const second = await startTestConsole({
    database: { url: running.databaseUrl },
    redisPrefix: running.env.SVC_REDIS_PREFIX ?? '',
    masterKey: running.env.SVC_MASTER_KEY ?? '',
    setUp: false,
  });
  t.teardown(() => second.stop());
  const first = await startTestFleet(running, clusterId, 2);
  t.teardown(() => first.stop());
  // Tokens come from the console that has an operator; the node connects to the other.
  const other = await startTestFleet(running, clusterId, 2, { serverUrl: second.nodeApiUrl });
  t.teardown(() => other.stop());
  const sequence = await ban();
  await Promise.all([first.waitForBans(sequence), other.waitForBans(sequence)]);
  await sameBans(t, other);
});

test.serial('a console that stops ends the streams with a reason', async (t) => {
  const stopping = await startTestConsole();
  const clusterId = await new Api(stopping).cluster('stopping');
  const fleet = await startTestFleet(stopping, clusterId, 3, { reconnectMs: 60_000, heartbeatMs: 300_000 });
  t.teardown(() => fleet.stop());
  await idle(fleet);
  await stopping.stop();
  for (const node of fleet.nodes) t.is(node.watchRefusal?.code, 'unavailable');
});

test.serial(
  'Redis flushed or gone: the console reads the database for all nodes, and pushes return with Redis',
  async (t) => {
    const own = await privateServers();
    t.teardown(() => own.stop());
    const console = await startTestConsole({ servers: own });
    t.teardown(() => console.stop());
    const its = new Api(console);
    const clusterId = await its.cluster('redis');
    const fleet = await startTestFleet(console, clusterId, 3, { heartbeatMs: 300_000 });
    t.teardown(() => fleet.stop());
    await fleet.waitForBans(await ban(its));
    await idle(fleet);
    const before = pulls(fleet.nodes);
    await console.running.runtime.redis.flushall();
    await fleet.waitForBans(await ban(its));
    await its.site(clusterId, 'redis.example');
    await fleet.waitForRevision(await revision(clusterId, its));
    process.kill(own.redis.pid, 'SIGSTOP');
    t.teardown(() => process.kill(own.redis.pid, 'SIGCONT'));
    const missed = await ban(its);
    await fleet.waitForBans(missed);
    process.kill(own.redis.pid, 'SIGCONT');
    await fleet.waitForBans(await ban(its));
    // No node asked for anything: heartbeats are minutes apart here.
    t.is(pulls(fleet.nodes), before);
  },
);

test.serial('a reader that never reads costs the console a bounded amount of memory', async (t) => {
  const clusterId = await api.cluster('slow');
  const fleet = await startTestFleet(running, clusterId, 4, { heartbeatMs: 60_000 });
  t.teardown(() => fleet.stop());
  await idle(fleet);
  for (const node of fleet.nodes) node.stall(true);
  // 8 MiB of configuration through streams that nobody reads: 200 revisions of large sites.
  const rule = 'x'.repeat(200);
  const origins = Array.from({ length: 32 }, (_, index) => ({ address: `${index}-${rule.slice(0, 50)}.example` }));
  const site = await api.site(clusterId, 'slow.example', { origins });
  const base = process.memoryUsage.rss();
  for (let count = 0; count < 150; count++) {
    const changed = origins.map((origin, index) => ({ ...origin, weight: ((count + index) % 100) + 1 }));
    await api.ok('PATCH', `/sites/${site.id}`, { origins: changed });
  }
  t.true(process.memoryUsage.rss() - base < 96 * 2 ** 20);
  for (const node of fleet.nodes) node.stall(false);
  await fleet.waitForRevision(await revision(clusterId));
  t.pass();
});
