import { join } from 'node:path';
import { Code, ConnectError } from '@connectrpc/connect';
import test, { type ExecutionContext } from 'ava';
import { BanPusher } from '../../../../../agents/edge/bans/ban-pusher.ts';
import { BanStore } from '../../../../../agents/edge/bans/ban-store.ts';
import { DataPlane } from '../../../../../agents/edge/caddy/data-plane.ts';
import { EdgeClient } from '../../../../../agents/edge/caddy/edge-client.ts';
import { ConfigPusher } from '../../../../../agents/edge/config/config-pusher.ts';
import { ConfigStore } from '../../../../../agents/edge/config/config-store.ts';
import { ServerClock } from '../../../../../agents/edge/lib/server-clock.ts';
import { allGlobalBans } from '../../../../../agents/edge/nft/ban-source.ts';
import { Protection } from '../../../../../agents/edge/security/protection.ts';
import { NodeChannel } from '../../../../../agents/kit/channel-client.ts';
import { TestAuthority } from '../../helpers/authority.ts';
import { TestCaddy } from '../../helpers/caddy.ts';
import { TestConsole } from '../../helpers/console.ts';
import { testIdentity } from '../../helpers/feeds.ts';
import { temporaryFolder, until } from '../../helpers/folder.ts';
import { memoryLog } from '../../helpers/log.ts';
import { challengeKeys, levelEvent, levels, lift, ownBan } from '../../helpers/security.ts';

/** An agent's part in protection between a console and a data plane of the test; the agent can be started anew. */
async function setUp(t: ExecutionContext) {
  const folder = temporaryFolder(t);
  const { log, lines } = memoryLog();
  const testConsole = await TestConsole.start({ authority: await TestAuthority.create() });
  const caddy = new TestCaddy(join(folder, 'edge.sock'));
  await caddy.start();
  const channel = new NodeChannel(await testIdentity(testConsole));
  let connected = false;
  const startAgent = () => {
    const client = new EdgeClient(caddy.socket);
    const serverClock = new ServerClock();
    serverClock.observe(testConsole.now());
    const store = { nodeId: 'n', clusterId: 'c', log };
    const observer = { put: () => undefined, remove: () => undefined, clear: () => undefined };
    const config = ConfigStore.open({ ...store, path: join(folder, 'config.journal'), observer });
    const bans = BanStore.open({ ...store, path: join(folder, 'bans.journal') });
    const globalChanges: string[] = [];
    const protection: Protection = new Protection({
      ...store,
      paths: { challengeKeys: join(folder, 'challenge-keys.json'), securityJournal: join(folder, 'security.journal') },
      capacity: 1000,
      client,
      channel: () => channel,
      isConnected: () => connected,
      serverClock,
      globalChanged: (cidrs) => globalChanges.push(...cidrs),
      liftAgain: (lifts) => banPusher.liftOwn(lifts),
      check: () => dataPlane.check(),
      changed: () => undefined,
      shown: () => undefined,
    });
    const dataPlane: DataPlane = new DataPlane({
      client,
      log,
      changed: () => undefined,
      answered: (status) => protection.onStatus(status),
    });
    new ConfigPusher({
      dataPlane,
      store: config,
      log,
      applied: () => undefined,
      repair: async () => undefined,
    });
    const banPusher: BanPusher = new BanPusher({ dataPlane, store: bans, log, applied: () => undefined });
    dataPlane.start();
    let closed = false;
    const stop = async () => {
      if (closed) return;
      closed = true;
      await protection.stop();
      dataPlane.stop();
      await Promise.all([config.close(), bans.close(), protection.close()]);
    };
    t.teardown(stop);
    const source = allGlobalBans(bans, protection);
    return { protection, dataPlane, banPusher, globalChanges, source, stop };
  };
  t.teardown(async () => {
    channel.close();
    await testConsole.stop();
    await caddy.kill();
  });
  return {
    lines,
    testConsole,
    caddy,
    startAgent,
    connect: (agent: { protection: Protection }) => {
      connected = true;
      agent.protection.onConnected();
    },
    disconnect: () => {
      connected = false;
    },
  };
}

test('keys are fetched at connect, pushed to each process, kept for a start without the console, never logged', async (t) => {
  const { lines, testConsole, caddy, startAgent, connect } = await setUp(t);
  testConsole.keys = challengeKeys(1);
  const first = startAgent();
  connect(first);
  await until(t, 'keys', () => caddy.keys?.version === 1n && first.protection.keysVersion === 1n);
  testConsole.keys = challengeKeys(2);
  first.protection.onKeysVersion(2n);
  await until(t, 'rotated', () => caddy.keys?.version === 2n && first.protection.keysVersion === 2n);
  const fetched = testConsole.calls.filter((call) => call === 'getChallengeKeys').length;
  first.protection.onKeysVersion(2n);
  first.protection.onKeysVersion(0n);
  await caddy.restart('second');
  await until(t, 'the new process has them', () => caddy.keys?.version === 2n);
  await first.stop();
  await caddy.restart('third');
  const offline = startAgent();
  await until(t, 'from disk', () => offline.protection.keysVersion === 2n);
  t.deepEqual(caddy.keys, challengeKeys(2));
  t.is(testConsole.calls.filter((call) => call === 'getChallengeKeys').length, fetched, 'no version, no question');
  const secret = Buffer.from(challengeKeys(2).current!.secret);
  for (const encoding of ['base64', 'hex', 'latin1'] as const)
    t.false(lines.some((line) => line.includes(secret.toString(encoding))));
});

test('a node without keys says so; an answer it cannot use leaves the ones it has', async (t) => {
  const { testConsole, caddy, startAgent, connect } = await setUp(t);
  const agent = startAgent();
  connect(agent);
  await until(t, 'asked', () => testConsole.calls.includes('getChallengeKeys'));
  t.is(agent.protection.keysVersion, 0n);
  testConsole.keys = challengeKeys(1);
  agent.protection.onKeysVersion(1n);
  await until(t, 'keys', () => agent.protection.keysVersion === 1n);
  testConsole.keys = { ...challengeKeys(2), current: undefined as never };
  agent.protection.onKeysVersion(2n);
  await until(t, 'refused', () => agent.protection.message.includes('no current key'));
  t.is(caddy.keys?.version, 1n);
});

test('an own ban is reported once and acknowledged to the data plane', async (t) => {
  const { testConsole, caddy, startAgent, connect } = await setUp(t);
  const agent = startAgent();
  connect(agent);
  await until(t, 'watching', () => caddy.watches.length > 0);
  const now = Date.now();
  caddy.tell({ bans: [ownBan('192.0.2.1/32', now), ownBan('2001:db8::/64', now, 60, '')] });
  await until(t, 'reported', () => testConsole.reportedBans.length > 0);
  const { bans } = testConsole.reportedBans[0]!;
  t.deepEqual(
    bans.map(({ siteId, cidr, reason, observed }) => [siteId, cidr, reason, observed]),
    [
      ['s1', '192.0.2.1/32', 'cc_ip_rate', 120n],
      ['', '2001:db8::/64', 'unknown_host_scan', 120n],
    ],
  );
  await until(t, 'acknowledged', () => caddy.kept === 0 && caddy.watches.some(({ after }) => after === 1n));
  await until(t, 'nothing left', () => agent.protection.view.unreported === 0);
  t.is(testConsole.reportedBans.length, 1);
});

for (const minutes of [-2, 0, 2]) {
  test(`times are the console's when its clock is ${minutes} minutes ahead`, async (t) => {
    const { testConsole, caddy, startAgent, connect } = await setUp(t);
    const ahead = minutes * 60_000;
    testConsole.clockAheadMs = ahead;
    const agent = startAgent();
    connect(agent);
    const now = Date.now();
    caddy.tell({ bans: [ownBan('192.0.2.1/32', now)], events: [levelEvent('e-1', now)] });
    const events = () => testConsole.reportedSecurity.flatMap((report) => report.events);
    await until(t, 'reported', () => testConsole.reportedBans.length > 0 && events().length > 0);
    const [ban] = testConsole.reportedBans[0]!.bans;
    const [event] = events();
    // The answer's way is in it, and nothing of the two minutes.
    for (const [what, at] of Object.entries({
      created: Number(ban!.createdAtMs),
      expires: Number(ban!.expiresAtMs) - 600_000,
      occurred: Number(event!.occurredAtMs),
    })) {
      t.true(Math.abs(at - now - ahead) < 30_000, `${what}: ${at - now - ahead}`);
    }
  });
}

test('own global bans enter the kernel set, site ones do not, and an automatic one of the console does not double', async (t) => {
  const { caddy, startAgent } = await setUp(t);
  const agent = startAgent();
  const now = Date.now();
  caddy.tell({
    bans: [ownBan('192.0.2.1/32', now), ownBan('192.0.2.2/32', now, 60, ''), ownBan('192.0.2.3/32', now, 60, '')],
  });
  await until(t, 'told', () => agent.globalChanges.length === 2);
  t.deepEqual(agent.source.orderedGlobalCidrs(), ['192.0.2.3/32', '192.0.2.2/32']);
  t.is(agent.source.remainingMs('192.0.2.1/32'), undefined);
  const console = { ordered: () => [{ siteId: '', cidr: '192.0.2.2/32' }], globalRemainingMs: () => 500_000 };
  const both = allGlobalBans(console as never, agent.protection);
  t.deepEqual(both.orderedGlobalCidrs(), ['192.0.2.2/32', '192.0.2.3/32']);
  t.is(both.remainingMs('192.0.2.2/32'), 500_000, 'the longer one counts');
});

test('own bans and levels are given to a new process before it is watched, and survive a restart of the agent', async (t) => {
  const { caddy, startAgent } = await setUp(t);
  const first = startAgent();
  const now = Date.now();
  caddy.tell({ bans: [ownBan('192.0.2.1/32', now)], sites: [levels('s1', 3, { '/a': 1 })] });
  caddy.tell({ sites: [levels('s2', 1)] });
  caddy.tell({ sites: [levels('s2', 0)] });
  await until(t, 'taken', () => first.protection.view.sitesAboveNormal === 1 && first.protection.view.ownBans === 1);
  t.is(caddy.restored.length, 1, 'the first process got what there was: nothing');
  t.deepEqual([caddy.restored[0]!.bans, caddy.restored[0]!.sites], [[], []]);
  const watches = caddy.watches.length;
  await caddy.restart('second');
  await until(t, 'restored', () => caddy.restored.length === 2 && caddy.calls.at(-1) === 'watchSecurity');
  t.true(
    caddy.watches.slice(watches).every(({ instanceId }) => instanceId === 'second'),
    'nobody takes it for the one before',
  );
  const order = caddy.calls.slice(caddy.calls.lastIndexOf('restoreSecurity'));
  t.deepEqual(
    order.filter((call) => call !== 'setChallengeKeys'),
    ['restoreSecurity', 'watchSecurity'],
  );
  const [, second] = caddy.restored;
  t.deepEqual(
    second!.bans.map(({ cidr, siteId }) => [cidr, siteId]),
    [['192.0.2.1/32', 's1']],
  );
  t.true(Math.abs(Number(second!.bans[0]!.expiresAtMs) - (now + 600_000)) < 1000);
  t.deepEqual(second!.sites, [levels('s1', 3, { '/a': 1 })]);

  await first.stop();
  caddy.tell({ sites: [levels('s1', 4)] });
  const again = startAgent();
  await until(t, 'heard', () => caddy.watches.at(-1)!.instanceId === 'second' && caddy.kept === 0);
  t.is(again.protection.view.ownBans, 1);
  await caddy.restart('third');
  await until(t, 'restored again', () => caddy.restored.at(-1)!.sites[0]?.site?.level === 4);
});

test('while the agent is away the process keeps what it did not acknowledge', async (t) => {
  const { caddy, startAgent } = await setUp(t);
  const first = startAgent();
  caddy.tell({ bans: [ownBan('192.0.2.1/32', Date.now())] });
  await until(t, 'acknowledged', () => caddy.kept === 0);
  await first.stop();
  caddy.tell({ bans: [ownBan('192.0.2.2/32', Date.now())] });
  const restored = caddy.restored.length;
  const again = startAgent();
  await until(t, 'both', () => again.protection.view.ownBans === 2);
  t.is(caddy.restored.length, restored, 'a process that kept running is not given back what it has');
});

test('a lift leaves journal and kernel, reaches the data plane, and also ends a ban that was on its way', async (t) => {
  const { caddy, startAgent } = await setUp(t);
  const agent = startAgent();
  const made = Date.now() - 5000;
  caddy.tell({ bans: [ownBan('192.0.2.1/32', made, 600, ''), ownBan('192.0.2.2/32', made, 600, '')] });
  await until(t, 'made', () => agent.source.orderedGlobalCidrs().length === 2);
  const lifts = [lift('192.0.2.1/32', made + 600_000, ''), lift('192.0.2.3/32', made + 600_000, '')];
  agent.protection.onLifts(lifts);
  agent.banPusher.liftOwn(lifts);
  t.deepEqual(agent.source.orderedGlobalCidrs(), ['192.0.2.2/32']);
  t.deepEqual(agent.globalChanges.slice(2), ['192.0.2.1/32']);
  await until(t, 'pushed', () => caddy.lifted.length === 2);
  caddy.tell({ bans: [ownBan('192.0.2.3/32', made, 600, ''), ownBan('192.0.2.1/32', Date.now() + 1, 600, '')] });
  await until(t, 'made anew', () => agent.source.orderedGlobalCidrs().includes('192.0.2.1/32'));
  t.deepEqual(agent.source.orderedGlobalCidrs(), ['192.0.2.1/32', '192.0.2.2/32'], 'a later ban is unaffected');
});

test('a lift that comes while the data plane is away is not lost', async (t) => {
  const { caddy, startAgent } = await setUp(t);
  const agent = startAgent();
  await until(t, 'up', () => agent.dataPlane.healthy);
  await caddy.kill();
  agent.banPusher.liftOwn([lift('192.0.2.1/32', Date.now())]);
  await caddy.start();
  await until(t, 'pushed', () => caddy.lifted.length === 1);
  agent.dataPlane.check();
  t.is(caddy.lifted.length, 1);
});

test('events are reported at most 500 at a time, with the state once and whenever it changed', async (t) => {
  const { testConsole, caddy, startAgent, connect } = await setUp(t);
  const agent = startAgent();
  const events = Array.from({ length: 1201 }, (_, index) => levelEvent(`e-${index}`, Date.now()));
  caddy.tell({ events, sites: [levels('s1', 1, { '/a': 2 })], dropped: 3n });
  await until(t, 'taken', () => agent.protection.view.unreported === 1201);
  connect(agent);
  await until(t, 'reported', () => agent.protection.view.unreported === 0);
  const reports = testConsole.reportedSecurity;
  t.deepEqual(
    reports.map((report) => [report.events.length, report.hasState, report.dropped]),
    [
      [500, true, 3n],
      [500, false, 3n],
      [201, false, 3n],
    ],
  );
  t.deepEqual(
    reports.flatMap((report) => report.events.map(({ id }) => id)),
    events.map(({ id }) => id),
    'oldest first',
  );
  t.deepEqual(
    reports[0]!.sites.map(({ siteId, level, paths }) => [siteId, level, paths.map(({ path, level }) => [path, level])]),
    [['s1', 1, [['/a', 2]]]],
  );
  connect(agent);
  await until(t, 'told again', () => testConsole.reportedSecurity.length === 4);
  t.like(testConsole.reportedSecurity[3], { events: [], hasState: true });
});

test('what the console does not take is sent again; what it refuses for good does not hold up the rest', async (t) => {
  const { testConsole, caddy, startAgent, connect, lines } = await setUp(t);
  let answers: Code[] = [Code.Unavailable, Code.InvalidArgument];
  testConsole.onCall = (method) => {
    if (method !== 'reportBans') return;
    const [code] = answers;
    answers = answers.slice(1);
    if (code !== undefined) throw new ConnectError('no', code);
  };
  const agent = startAgent();
  connect(agent);
  await until(t, 'watching', () => caddy.watches.length > 0);
  caddy.tell({ bans: [ownBan('192.0.2.1/32', Date.now())] });
  await until(t, 'refused twice', () => answers.length === 0 && agent.protection.view.unreported === 0);
  t.true(lines.some((line) => line.includes('report discarded')));
  caddy.tell({ bans: [ownBan('192.0.2.2/32', Date.now())] });
  await until(t, 'reported', () => testConsole.reportedBans.length === 1);
  t.deepEqual(
    testConsole.reportedBans[0]!.bans.map(({ cidr }) => cidr),
    ['192.0.2.2/32'],
  );
});

test('what was not reported survives a restart of the agent', async (t) => {
  const { testConsole, caddy, startAgent, connect } = await setUp(t);
  const first = startAgent();
  caddy.tell({ bans: [ownBan('192.0.2.1/32', Date.now())], events: [levelEvent('e-1', Date.now())] });
  await until(t, 'acknowledged', () => caddy.kept === 0);
  await first.stop();
  const again = startAgent();
  connect(again);
  await until(t, 'reported', () => testConsole.reportedBans.length === 1 && testConsole.reportedSecurity.length === 1);
  t.is(testConsole.reportedBans[0]!.bans[0]!.cidr, '192.0.2.1/32');
  t.is(testConsole.reportedSecurity[0]!.events[0]!.id, 'e-1');
});

test('more own bans than one report takes travel in several', async (t) => {
  const { testConsole, caddy, startAgent, connect } = await setUp(t);
  const agent = startAgent();
  caddy.tell({ bans: Array.from({ length: 2500 }, (_, n) => ownBan(`10.0.${n >> 8}.${n & 255}/32`, Date.now())) });
  await until(t, 'taken', () => agent.protection.view.unreported === 2500);
  connect(agent);
  await until(t, 'reported', () => agent.protection.view.unreported === 0);
  t.deepEqual(
    testConsole.reportedBans.map(({ bans }) => bans.length),
    [1000, 1000, 500],
  );
});
