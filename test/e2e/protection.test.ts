// Protection with a real console, two agents and two Caddys: Under Attack, passes, floods and automatic bans, and what is
// left of them when a part dies.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import pg from 'pg';
import { freePort } from '../../bench/lib/servers.ts';
import { type EdgeNode, startEdgeNode } from '../helpers/edge-node.ts';
import { eventually } from '../helpers/eventually.ts';
import { type Installation, startInstallation } from '../helpers/installation.ts';
import { existingRunFolders } from '../helpers/node-files.ts';
import { type Address, flood, Visitor } from '../helpers/visitor.ts';

const ATTACKED = 'attacked.example';
const QUIET = 'quiet.example';
const ROTATED = 'rotated.example';

let installation: Installation;
let second: EdgeNode;
let other: Address;
/** Between two requests of one address: faster ones would be over the rate of a policy. */
const CALM_MS = 500;
const sites = new Map<string, string>();
const early = new Visitor('203.0.113.200');

interface SecurityState {
  nodes: { id: string; level: string }[];
}

const status = (node: EdgeNode) =>
  JSON.parse(readFileSync(join(existingRunFolders(node.stateDir)[0]!, 'status.json'), 'utf8')) as {
    agent: { pid: number };
    protection: { keysVersion: string; ownBans: number; sitesAboveNormal: number };
  };

async function createSite(domain: string): Promise<void> {
  const { client, origin } = installation;
  const { site } = await client.api<{ site: { id: string } }>('POST', '/sites', {
    domains: [domain],
    origins: [origin],
  });
  sites.set(domain, site.id);
}

const protect = (domain: string, change: Record<string, unknown>) =>
  installation.client.api('PATCH', `/sites/${sites.get(domain)}/protection`, change);

/** CC with thresholds that a test reaches in seconds. */
const policy = (cc: Record<string, unknown>) => ({
  cc: {
    enabled: true,
    maxLevel: 'js',
    windowSeconds: 5,
    siteQps: 0,
    urlQps: 0,
    ipQps: 0,
    ipBanSeconds: 600,
    originErrorPercent: 0,
    escalateAfterSeconds: 1,
    cooldownSeconds: 2,
    ...cc,
  },
});

async function levelAt(domain: string, nodeId = installation.node.nodeId): Promise<string | undefined> {
  const state = await installation.client.api<SecurityState>('GET', `/sites/${sites.get(domain)}/security`);
  return state.nodes.find(({ id }) => id === nodeId)?.level;
}

let strangers = 0;

/** What a visitor gets; another one each time unless told otherwise, so that asking often makes nobody suspicious. */
async function answerFor(edge: Address, domain: string, address = `192.0.2.${(strangers++ % 250) + 1}`) {
  const visitor = new Visitor(address);
  try {
    return await visitor.get(edge, domain);
  } finally {
    visitor.close();
  }
}

const isChallenged = async (edge: Address, domain: string, kind: string) =>
  (await answerFor(edge, domain)).challenge === kind;
const isServed = async (edge: Address, domain: string, address?: string) =>
  (await answerFor(edge, domain, address)).status === 200;
const isBanned = async (edge: Address, domain: string, address: string) =>
  (await answerFor(edge, domain, address)).error === 'ip-banned';

/** One client asks more often than the policy allows it. */
async function overdo(edge: Address, domain: string, address: string): Promise<void> {
  const visitor = new Visitor(address);
  try {
    await eventually(async () => (await visitor.get(edge, domain)).error === 'ip-banned', {
      everyMs: 1,
      what: `${address} to be banned`,
    });
  } finally {
    visitor.close();
  }
}

test.before('a console, two nodes and sites', async () => {
  installation = await startInstallation();
  const { client, clusterId, edge } = installation;
  other = { host: '127.0.0.1', port: await freePort() };
  second = await startEdgeNode({ client, clusterId, listen: `127.0.0.1:${other.port}`, kernelBans: 'off' });
  for (const domain of [ATTACKED, QUIET, ROTATED]) await createSite(domain);
  for (const domain of [ATTACKED, QUIET, ROTATED])
    for (const at of [edge, other]) await eventually(() => isServed(at, domain), { what: domain });
  // Rotation waits until the keys have been due for a while: it comes while the other tests run.
  await protect(ROTATED, { underAttack: true });
  await eventually(() => isChallenged(edge, ROTATED, 'js'), { what: 'the first challenge' });
  await early.passJs(edge, ROTATED);
  const database = new pg.Client({ connectionString: installation.databaseUrl });
  await database.connect();
  await database.query(`update challenge_key_set set rotated_at = rotated_at - interval '2 days'`);
  await database.end();
});

test.afterEach.always('show errors', (t) => {
  if (!t.passed) for (const line of installation.errors()) t.log(line);
  if (!t.passed) t.log(installation.node.log().split('\n').slice(-20).join('\n'));
});

test.after.always('stop everything', async () => {
  early.close();
  await second?.stop();
  await installation?.stop();
});

test.serial('one PATCH challenges every visitor of the site; who passes is served, on every node', async (t) => {
  const { edge } = installation;
  await protect(ATTACKED, { underAttack: true });
  for (const at of [edge, other]) await eventually(() => isChallenged(at, ATTACKED, 'js'), { what: 'the challenge' });
  t.true(await isServed(edge, QUIET), 'another site is not touched');
  const visitor = new Visitor('203.0.113.10');
  t.teardown(() => visitor.close());
  const page = await visitor.get(edge, ATTACKED);
  t.is(page.status, 403);
  t.is(page.headers['cache-control'], 'no-store, private');
  const verified = await visitor.passJs(edge, ATTACKED, '/cart?id=1');
  t.is(verified.headers.location, '/cart?id=1');
  t.like(await visitor.get(edge, ATTACKED), { status: 200, challenge: '', body: 'origin' });
  t.is((await visitor.get(other, ATTACKED)).status, 200, 'the other node accepts the pass');
  const copied = new Visitor('198.18.7.7');
  t.teardown(() => copied.close());
  copied.cookie = visitor.cookie;
  t.is((await copied.get(edge, ATTACKED)).challenge, 'js', 'a pass is worth nothing in another network');
  await protect(ATTACKED, { underAttack: false });
  await eventually(() => isServed(edge, ATTACKED), { what: 'the end of the challenge' });
});

test.serial('the global switch challenges the visitors of all sites', async (t) => {
  const { edge, client } = installation;
  await client.api('PUT', '/settings/protection', { underAttack: true, underAttackChallenge: 'pow' });
  for (const domain of [ATTACKED, QUIET])
    for (const at of [edge, other]) await eventually(() => isChallenged(at, domain, 'pow'), { what: domain });
  await client.api('PUT', '/settings/protection', { underAttack: false });
  await eventually(() => isServed(edge, QUIET), { what: 'the end of the challenge' });
  t.true(await isServed(edge, ATTACKED));
});

type Judged = 'banned' | 'blocked' | 'challenged' | 'disabled' | 'passes' | 'something else';

/** What an edge did with a request, in the words of a dossier. */
function judged({ status, error, challenge }: Awaited<ReturnType<typeof answerFor>>): Judged {
  if (challenge !== '') return 'challenged';
  if (error === 'ip-banned') return 'banned';
  if (error === 'policy-denied') return 'blocked';
  if (error === 'site-disabled') return 'disabled';
  return status === 200 ? 'passes' : 'something else';
}

test.serial('what the dossier of an address says it meets is what an edge answers, row by row', async (t) => {
  const { edge, client } = installation;
  const address = '198.51.100.77';
  const siteId = sites.get(ATTACKED)!;
  const agree = async (what: string, expected: Judged, level = 'normal') => {
    await eventually(async () => judged(await answerFor(edge, ATTACKED, address)) === expected, {
      everyMs: CALM_MS,
      what: `${what}: the edge to answer so`,
    });
    const { sites: told } = await client.api<{ sites: { siteId: string; outcome: string; level: string }[] }>(
      'GET',
      `/addresses/${address}?siteId=${siteId}`,
    );
    t.like(told.find((each) => each.siteId === siteId)!, { outcome: expected, level }, what);
  };
  const ban = (more: Record<string, unknown>) =>
    client.api<{ id: string }>('POST', '/bans', { cidr: address, reason: 'abuse', durationSeconds: 3600, ...more });
  const list = (kind: string) =>
    client.api<{ id: string }>('POST', '/ip-lists', { name: `dossier_${kind}`, kind, entries: ['198.51.100.0/24'] });

  await agree('nothing applies', 'passes');
  await protect(ATTACKED, { underAttack: true, underAttackChallenge: 'pow' });
  await agree('Under Attack', 'challenged', 'pow');
  const block = await list('block');
  await agree('a block list before challenges', 'blocked');
  const atSite = await ban({ scope: 'site', siteId });
  await agree('a ban of the site before the list', 'banned');
  const everywhere = await ban({ scope: 'platform' });
  await client.api('DELETE', `/bans/${atSite.id}`);
  await agree('a ban of all sites', 'banned');
  await client.api('PUT', `/sites/${siteId}/enabled`, { enabled: false });
  await agree('a disabled site before bans', 'disabled');
  const allow = await list('allow');
  await agree('an allow list opens no disabled site', 'disabled');
  await client.api('PUT', `/sites/${siteId}/enabled`, { enabled: true });
  await agree('an allow list spares it the ban, the list and the challenge', 'passes');
  await client.api('DELETE', `/ip-lists/${allow.id}`);
  await agree('without it the ban holds again', 'banned');
  await client.api('DELETE', `/bans/${everywhere.id}`);
  await client.api('DELETE', `/ip-lists/${block.id}`);
  await agree('what is left is the challenge', 'challenged', 'pow');
  await protect(ATTACKED, { underAttack: false, underAttackChallenge: 'js' });
  await agree('and nothing in the end', 'passes');
});

test.serial(
  'a flood raises the level on the node that feels it, the console shows it, and it falls again',
  async (t) => {
    const { edge, client, node } = installation;
    await protect(ATTACKED, policy({ siteQps: 10 }));
    const running = flood(edge, ATTACKED, 60);
    try {
      await eventually(() => isChallenged(edge, ATTACKED, 'js'), { timeoutMs: 60_000, what: 'the level to rise' });
      await eventually(async () => (await levelAt(ATTACKED)) === 'js', {
        everyMs: 250,
        what: 'the console to show it',
      });
      t.is(await levelAt(ATTACKED, second.nodeId), 'normal', 'each node counts for itself');
      t.true(await isServed(other, ATTACKED));
      await eventually(() => status(node).protection.sitesAboveNormal === 1, { what: 'the status of the node' });
    } finally {
      running.stop();
    }
    await eventually(() => isServed(edge, ATTACKED), { timeoutMs: 60_000, everyMs: 200, what: 'the level to fall' });
    await eventually(async () => (await levelAt(ATTACKED)) === 'normal', {
      everyMs: 250,
      what: 'the console to show that it fell',
    });
    const { items } = await client.api<{
      items: { kind: string; level: string; previousLevel: string; metric: string; node: { id: string } }[];
    }>('GET', `/sites/${sites.get(ATTACKED)}/security/events?kind=site_level`);
    t.deepEqual(items.map(({ previousLevel, level, metric }) => [previousLevel, level, metric]).slice(-4), [
      ['cookie302', 'normal', 'cooldown'],
      ['js', 'cookie302', 'cooldown'],
      ['cookie302', 'js', 'site_qps'],
      ['normal', 'cookie302', 'site_qps'],
    ]);
    t.true(items.every((event) => event.node.id === node.nodeId));
  },
);

test.serial(
  'a client over its rate is banned there at once, on the other node soon, and nowhere once it is lifted',
  async (t) => {
    const { edge, client, node } = installation;
    const address = '203.0.113.66';
    await protect(ATTACKED, policy({ ipQps: 5 }));
    await overdo(edge, ATTACKED, address);
    await eventually(() => isBanned(other, ATTACKED, address), {
      everyMs: CALM_MS,
      what: 'the other node to enforce it',
    });
    t.true(await isServed(other, QUIET, address), 'it is a ban of the site');
    t.true(await isServed(edge, ATTACKED), 'others are served');
    const { items } = await client.api<{
      items: { id: string; cidr: string; source: string; reason: string; distributed: boolean; node: { id: string } }[];
    }>('GET', `/bans?siteId=${sites.get(ATTACKED)}&source=auto`);
    t.like(items[0], { cidr: `${address}/32`, reason: 'cc_ip_rate', distributed: true });
    t.is(items[0]!.node.id, node.nodeId);
    await eventually(() => status(node).protection.ownBans === 1, { what: 'the status of the node' });
    t.is(status(second).protection.ownBans, 0, 'there it is a ban of the console');
    await client.api('DELETE', `/bans/${items[0]!.id}`);
    await eventually(() => isServed(other, ATTACKED, address), {
      everyMs: CALM_MS,
      what: 'the lift at the other node',
    });
    await eventually(() => isServed(edge, ATTACKED, address), {
      everyMs: CALM_MS,
      what: "the lift of the node's own ban",
    });
    await eventually(() => status(node).protection.ownBans === 0, { what: 'the own ban to leave the journal' });
  },
);

/**
 * Raises the level of the attacked site and bans the address there, until the journal holds both: bans of earlier tests
 * are still in it, and the status of a node is a moment old.
 */
async function escalate(address: string): Promise<void> {
  const { edge, node } = installation;
  await eventually(() => status(node).protection.sitesAboveNormal === 0, { what: 'the status to show no level' });
  const { ownBans } = status(node).protection;
  await protect(ATTACKED, policy({ siteQps: 10, ipQps: 20, cooldownSeconds: 600 }));
  const running = flood(edge, ATTACKED, 60);
  try {
    await overdo(edge, ATTACKED, address);
    await eventually(() => isChallenged(edge, ATTACKED, 'js'), { timeoutMs: 60_000, what: 'the level to rise' });
    await eventually(
      () => status(node).protection.ownBans > ownBans && status(node).protection.sitesAboveNormal === 1,
      { what: 'the journal to hold both' },
    );
  } finally {
    running.stop();
  }
}

for (const victim of ['caddy', 'agent'] as const) {
  test.serial(`${victim} is killed during an escalation: the level and own bans are kept`, async (t) => {
    const { edge, node } = installation;
    const address = victim === 'caddy' ? '203.0.113.71' : '203.0.113.72';
    await escalate(address);
    const before = node.pids()!;
    process.kill(before[victim], 'SIGKILL');
    await eventually(() => node.pids() !== undefined && node.pids()![victim] !== before[victim], {
      what: 'a new process',
    });
    await eventually(() => isChallenged(edge, ATTACKED, 'js'), { what: 'the level to be back' });
    await eventually(() => isBanned(edge, ATTACKED, address), { everyMs: CALM_MS, what: 'the own ban to be back' });
    await eventually(() => status(node).agent.pid === node.pids()!.agent, { what: 'the status of the node' });
    t.true(status(node).protection.ownBans > 0);
    t.true(await isChallenged(edge, ATTACKED, 'js'), 'the cooldown has not passed');
    await protect(ATTACKED, policy({ enabled: false }));
    await eventually(() => isServed(edge, ATTACKED), { what: 'the policy to be off' });
  });
}

test.serial('Caddy comes back without the agent: from its first answer own bans, levels and passes hold', async (t) => {
  const { edge, node } = installation;
  const address = '203.0.113.75';
  await protect(QUIET, { underAttack: true });
  await eventually(() => isChallenged(edge, QUIET, 'js'), { what: 'the challenge' });
  const passed = new Visitor('203.0.113.76');
  const banned = new Visitor(address);
  t.teardown(() => [passed, banned].forEach((each) => void each.close()));
  await passed.passJs(edge, QUIET);
  await escalate(address);
  const before = node.pids()!;
  process.kill(before.agent, 'SIGSTOP');
  try {
    process.kill(before.caddy, 'SIGKILL');
    const first = await eventually(() => banned.get(edge, ATTACKED).catch(() => undefined), {
      everyMs: 5,
      what: 'the first answer',
    });
    t.is(first.error, 'ip-banned');
    t.not(node.pids()!.caddy, before.caddy);
    t.true(await isChallenged(edge, ATTACKED, 'js'), 'the level goes on');
    t.true(await isChallenged(edge, QUIET, 'js'), 'there are keys');
    t.is((await passed.get(edge, QUIET)).status, 200, 'a pass given before is good');
  } finally {
    process.kill(before.agent, 'SIGCONT');
  }
  await protect(ATTACKED, policy({ enabled: false }));
  await protect(QUIET, { underAttack: false });
  for (const domain of [ATTACKED, QUIET])
    await eventually(() => isServed(edge, domain), { what: 'the policies to be off' });
  t.true(await isBanned(edge, ATTACKED, address), 'and the agent, which is back, has not lifted it');
});

test.serial('without the console a node bans by itself, and reports it when the console is back', async (t) => {
  const { edge, client, consoles } = installation;
  const address = '203.0.113.80';
  await protect(ATTACKED, policy({ ipQps: 5 }));
  await eventually(() => isServed(edge, ATTACKED), { what: 'the site' });
  // The policy has reached both nodes when the later change has.
  await protect(QUIET, { underAttack: true });
  for (const at of [edge, other]) await eventually(() => isChallenged(at, QUIET, 'js'), { what: 'the policy' });
  const processes = [consoles.app, consoles.channel, consoles.worker].map(({ child }) => child.pid);
  for (const pid of processes) process.kill(pid, 'SIGSTOP');
  try {
    await overdo(edge, ATTACKED, address);
    t.true(await isBanned(edge, ATTACKED, address));
    t.true(await isServed(other, ATTACKED, address), 'the other node cannot know');
    t.true(await isChallenged(edge, QUIET, 'js'), 'and challenges go on');
    const visitor = new Visitor('203.0.113.81');
    t.teardown(() => visitor.close());
    await visitor.passJs(edge, QUIET);
    t.is((await visitor.get(edge, QUIET)).status, 200);
  } finally {
    for (const pid of processes) process.kill(pid, 'SIGCONT');
  }
  await eventually(() => isBanned(other, ATTACKED, address), {
    timeoutMs: 90_000,
    everyMs: CALM_MS,
    what: 'the other node to enforce it',
  });
  await protect(QUIET, { underAttack: false });
  const { items } = await client.api<{ items: { cidr: string }[] }>('GET', `/bans?address=${address}`);
  t.deepEqual(
    items.map(({ cidr }) => cidr),
    [`${address}/32`],
  );
});

test.serial('a pass outlives the rotation of the keys', async (t) => {
  const { edge, node } = installation;
  for (const each of [node, second])
    await eventually(() => status(each).protection.keysVersion === '2', { timeoutMs: 180_000, what: 'the rotation' });
  for (const at of [edge, other]) t.is((await early.get(at, ROTATED)).status, 200, 'signed with the key before');
  const visitor = new Visitor('203.0.113.201');
  t.teardown(() => visitor.close());
  await visitor.passJs(edge, ROTATED);
  t.is((await visitor.get(other, ROTATED)).status, 200, 'signed with the new one');
});
