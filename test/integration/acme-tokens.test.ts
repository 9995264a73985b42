// What certificate authorities are answered: from a commit to every node that can answer, and back to who waits for them.
import test from 'ava';
import {
  type AcmeAnswer,
  type AcmePlace,
  MAX_TOKENS,
  nodesBehind,
  putTokens,
  readAcmeChanges,
  readAcmeTargets,
  readAcmeTokens,
  removeTokens,
  sweepAcmeTokens,
  TooManyTokens,
} from '../../models/certificates/acme-token.ts';
import { beginEpoch } from '../../models/config/epoch.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { AcmeNode } from '../helpers/acme-node.ts';
import { addNode, setPolicy } from '../helpers/canary-cluster.ts';
import { startTestConsole, startTestConsoleProcess, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { enrollOne } from '../helpers/fleet.ts';
import { change } from '../helpers/pipeline.ts';
import { Api } from '../helpers/resources.ts';

let running: TestConsole;
let api: Api;
let runtime: Runtime;
let last = 0;

test.before('start', async () => {
  running = await startTestConsole();
  api = new Api(running);
  runtime = running.running.runtime;
});
test.after.always('stop', () => running?.stop());

const newCluster = () => api.cluster(`acme-${last++}`);
const answer = (host = `h${last++}.example`): AcmeAnswer => ({
  host,
  token: `t-${host}`,
  keyAuthorization: `t-${host}.k`,
});
const keyOf = ({ host, token }: AcmeAnswer) => `${host} ${token}`;
const answersOf = (...given: AcmeAnswer[]) => given.map((one) => [keyOf(one), one.keyAuthorization]);

async function put(clusterId: string, ...answers: AcmeAnswer[]): Promise<AcmePlace> {
  return (await change(runtime, (tx) => putTokens(tx, [clusterId], answers))).output.get(clusterId)!;
}
async function remove(clusterId: string, ...answers: AcmeAnswer[]): Promise<AcmePlace> {
  return (await change(runtime, (tx) => removeTokens(tx, [clusterId], answers))).output.get(clusterId)!;
}
async function newNode(clusterId: string, of: TestConsole = running): Promise<AcmeNode> {
  return new AcmeNode(await enrollOne(of, clusterId, ['http01-v1']));
}
/** Connected, and counted as online. */
async function online(node: AcmeNode, of: Pick<TestConsole, 'client' | 'nodeApiUrl'> = running): Promise<void> {
  node.connect(of);
  await node.heartbeat();
  await eventually(async () => (await nodesBehind(runtime.pools.api, node.identity.clusterId, NOWHERE)).reached > 0);
}
const NOWHERE = { epoch: 0n, sequence: 0n };
const awaited = (clusterId: string, place: AcmePlace) => nodesBehind(runtime.pools.api, clusterId, place);
const everybodyHas = (clusterId: string, place: AcmePlace) =>
  eventually(async () => {
    const { reached, behind } = await awaited(clusterId, place);
    return reached > 0 && behind.length === 0;
  });

test.serial('a token reaches a connected node as a batch, is acknowledged, and goes again', async (t) => {
  const clusterId = await newCluster();
  const node = await newNode(clusterId);
  t.teardown(() => node.disconnect());
  await online(node);
  const [first, second] = [answer(), answer()];
  await everybodyHas(clusterId, await put(clusterId, first));
  t.deepEqual([...node.answers], answersOf(first));
  const { pulls, batches } = node.counts;
  await everybodyHas(clusterId, await put(clusterId, second));
  t.deepEqual([...node.answers], answersOf(first, second));
  await everybodyHas(clusterId, await remove(clusterId, first));
  t.deepEqual([...node.answers], answersOf(second));
  t.deepEqual({ pulls: node.counts.pulls, batches: node.counts.batches - batches }, { pulls, batches: 2 });
});

test.serial('it makes no revision and no entry', async (t) => {
  const clusterId = await newCluster();
  const before = await api.ok('GET', `/clusters/${clusterId}`);
  await put(clusterId, answer());
  const after = await api.ok('GET', `/clusters/${clusterId}`);
  t.is(after.latestRevision, before.latestRevision);
});

test.serial('a canary that tries something else holds no token back', async (t) => {
  const clusterId = await newCluster();
  await addNode(runtime, clusterId, `canary-${last++}`, { isCanary: true });
  await setPolicy(runtime, clusterId, true);
  const node = await newNode(clusterId);
  t.teardown(() => node.disconnect());
  await online(node);
  const tried = async () => (await api.ok('GET', `/clusters/${clusterId}/rollout`)).candidateRevision;
  await api.site(clusterId, 'tried.example');
  const candidate = await tried();
  t.truthy(candidate);
  const given = answer();
  await everybodyHas(clusterId, await put(clusterId, given));
  t.deepEqual([...node.answers], answersOf(given));
  t.is(await tried(), candidate);
});

test.serial('only the cluster it was put into gets it, and several get it at once', async (t) => {
  const [one, two, three] = [await newCluster(), await newCluster(), await newCluster()];
  const given = answer();
  const { output } = await change(runtime, (tx) => putTokens(tx, [three, one], [given, given]));
  t.deepEqual([...output.keys()].sort(), [one, three].sort());
  t.is(output.get(one)!.sequence, 1n);
  const hosts = async (id: string) => (await readAcmeTokens(runtime.pools.channel, id)).tokens.map(({ host }) => host);
  t.deepEqual([await hosts(one), await hosts(two), await hosts(three)], [[given.host], [], [given.host]]);
});

test.serial('a node that was away gets everything when it comes back, and nobody waits for it meanwhile', async (t) => {
  const clusterId = await newCluster();
  const node = await newNode(clusterId);
  t.teardown(() => node.disconnect());
  await online(node);
  node.disconnect();
  await api
    .sql('node_state')
    .where({ node_id: node.identity.nodeId })
    .update({ last_seen_at: new Date(0) });
  const given = [answer(), answer(), answer()];
  await put(clusterId, ...given);
  const place = await remove(clusterId, given[1]!);
  t.deepEqual(await awaited(clusterId, place), { reached: 0, behind: [], unable: [] });
  await online(node);
  await everybodyHas(clusterId, place);
  t.deepEqual([...node.answers], answersOf(given[0]!, given[2]!));
});

test.serial('a node that lost what it had is behind, whatever it said before', async (t) => {
  const clusterId = await newCluster();
  const node = await newNode(clusterId);
  t.teardown(() => node.disconnect());
  await online(node);
  const place = await put(clusterId, answer());
  await everybodyHas(clusterId, place);
  node.disconnect();
  const emptied = new AcmeNode(node.identity);
  emptied.acknowledges = false;
  t.teardown(() => emptied.disconnect());
  emptied.connect(running);
  await eventually(() => emptied.place !== undefined);
  emptied.place = undefined;
  // What overtook it may not be taken back for some seconds; then it counts.
  await eventually(
    async () => {
      await emptied.heartbeat();
      emptied.place = undefined;
      return (await awaited(clusterId, place)).behind.length === 1;
    },
    { everyMs: 500 },
  );
  t.pass();
});

test.serial('Redis that forgets everything in between takes nothing away', async (t) => {
  const clusterId = await newCluster();
  const node = await newNode(clusterId);
  t.teardown(() => node.disconnect());
  await online(node);
  const given: AcmeAnswer[] = [];
  for (let round = 0; round < 5; round++) {
    const keys = await runtime.redis.keys(`${runtime.env.redisPrefix}*`);
    if (keys.length > 0) await runtime.redis.del(...keys);
    given.push(answer());
    const place = await put(clusterId, given.at(-1)!);
    if (round % 2 === 0) await everybodyHas(clusterId, place);
  }
  const place = (await readAcmeTargets(runtime.pools.channel, [clusterId])).get(clusterId)!;
  await everybodyHas(clusterId, place);
  t.deepEqual([...node.answers], answersOf(...given));
});

test.serial('a process that is killed with a token on its way leaves it to the next one', async (t) => {
  const { env, databaseUrl } = running;
  const killed = await startTestConsoleProcess({
    database: { url: databaseUrl },
    masterKey: env.SVC_MASTER_KEY!,
    redisPrefix: env.SVC_REDIS_PREFIX!,
    setUp: false,
  });
  t.teardown(() => killed.stop());
  const clusterId = await newCluster();
  const node = await newNode(clusterId);
  t.teardown(() => node.disconnect());
  await online(node, killed);
  await everybodyHas(clusterId, await put(clusterId, answer()));
  const given = answer();
  const [place] = await Promise.all([put(clusterId, given), killed.kill()]);
  await eventually(() => !node.connected);
  node.connect(running);
  // What the killed process held in the database may still be held: nodes ask again.
  await eventually(() => node.heartbeat().then(() => true), { what: 'the first heartbeat' });
  await everybodyHas(clusterId, place);
  t.true(node.answers.has(keyOf(given)));
});

test.serial('in a new history nodes ask for everything, and who waited for the former one goes on', async (t) => {
  const clusterId = await newCluster();
  const node = await newNode(clusterId);
  t.teardown(() => node.disconnect());
  await online(node);
  const given = answer();
  const before = await put(clusterId, given);
  await everybodyHas(clusterId, before);
  await beginEpoch(runtime.pools.api, 'declared_restored');
  const after = await put(clusterId, answer());
  t.true(after.epoch > before.epoch);
  await everybodyHas(clusterId, before);
  await everybodyHas(clusterId, after);
  t.is(node.place!.epoch, after.epoch);
  t.is(node.answers.size, 2);
});

test.serial('who is waited for: active nodes that are online and able, wherever they say they are', async (t) => {
  const clusterId = await newCluster();
  const [first] = [await put(clusterId, answer()), await put(clusterId, answer()), await put(clusterId, answer())];
  const place = { ...first!, sequence: 2n };
  const rows = [
    ['at the place', { acme_sequence: 2 }, 'reached'],
    ['beyond it', { acme_sequence: 3 }, 'reached'],
    ['before it', { acme_sequence: 1 }, 'behind'],
    ['never said', {}, 'behind'],
    ['beyond what there is', { acme_sequence: 4 }, 'behind'],
    ['of an earlier history', { acme_epoch: 1, acme_sequence: 3 }, 'behind'],
    ['of a later history', { acme_epoch: '9000000000000000000', acme_sequence: 3 }, 'behind'],
    ['unable', { features: ['bans-v1'], acme_sequence: 3 }, 'unable'],
    ['offline', { last_seen_at: new Date(0) }, 'nobody'],
    ['disabled', {}, 'nobody'],
  ] as const;
  for (const [name, state] of rows) {
    const status = name === 'disabled' ? 'disabled' : 'active';
    const id = await api.node(clusterId, name, { features: ['http01-v1'], status });
    await api
      .sql('node_state')
      .where({ node_id: id })
      .update({ acme_epoch: String(place.epoch), ...state });
  }
  const found = await awaited(clusterId, place);
  const names = (of: string) => rows.filter(([, , is]) => is === of).map(([name]) => name);
  t.is(found.reached, names('reached').length);
  t.deepEqual(
    found.behind.map(({ name }) => name),
    names('behind').sort(),
  );
  t.deepEqual(
    found.unable.map(({ name }) => name),
    names('unable'),
  );
});

test.serial('a reader that follows numbers misses nothing, while writers commit, wait and roll back', async (t) => {
  const clusterId = await newCluster();
  const expected = new Set<string>();
  let writing = true;
  const write = async (writer: number) => {
    for (let round = 0; round < 12; round++) {
      const given = [answer(), answer()];
      if (round % 4 === writer % 4) {
        await t.throwsAsync(
          change(runtime, async (tx) => {
            await putTokens(tx, [clusterId], given);
            throw new Error('rolled back');
          }),
        );
        continue;
      }
      await put(clusterId, ...given);
      for (const one of given) expected.add(keyOf(one));
      if (round % 3 !== 0) continue;
      await remove(clusterId, given[0]!);
      expected.delete(keyOf(given[0]!));
    }
  };
  const held = new Set<string>();
  let place = 0n;
  const read = async () => {
    const batch = await readAcmeChanges(runtime.pools.channel, clusterId, place, 3);
    if (!batch) return false;
    t.is(batch.from, place);
    place = batch.to;
    for (const { host, token } of batch.removed) held.delete(`${host} ${token}`);
    for (const { host, token } of batch.upserts) held.add(`${host} ${token}`);
    return true;
  };
  const writers = Promise.all([0, 1, 2, 3].map(write)).finally(() => {
    writing = false;
  });
  while (writing) if (!(await read())) await new Promise((resolve) => setImmediate(resolve));
  await writers;
  while (await read());
  t.deepEqual([...held].sort(), [...expected].sort());
});

test.serial('a cluster has 10,000 at most: one more changes nothing, one that is there may be put again', async (t) => {
  const clusterId = await newCluster();
  const all = Array.from({ length: MAX_TOKENS }, (_, index) => answer(`full-${index}.example`));
  for (let from = 0; from < MAX_TOKENS; from += 1000) await put(clusterId, ...all.slice(from, from + 1000));
  const place = (await readAcmeTargets(runtime.pools.channel, [clusterId])).get(clusterId)!;
  await t.throwsAsync(put(clusterId, answer()), { instanceOf: TooManyTokens });
  t.deepEqual((await readAcmeTargets(runtime.pools.channel, [clusterId])).get(clusterId), place);
  await put(clusterId, all[0]!);
  await remove(clusterId, all[1]!);
  await put(clusterId, answer());
  t.is((await readAcmeTokens(runtime.pools.channel, clusterId)).tokens.length, MAX_TOKENS);
});

test.serial('what ended is answered no more, and is swept when every node has forgotten it', async (t) => {
  const clusterId = await newCluster();
  const [ended, long, kept] = [answer(), answer(), answer()];
  await put(clusterId, ended, long, kept);
  const age = (host: string, minutes: number) =>
    api
      .sql('acme_token')
      .where({ cluster_id: clusterId, host })
      .update({ expires_at: new Date(Date.now() - minutes * 60_000) });
  await age(ended.host, 1);
  await age(long.host, 61);
  const { tokens, position } = await readAcmeTokens(runtime.pools.channel, clusterId);
  t.deepEqual(
    tokens.map(({ host }) => host),
    [kept.host],
  );
  const batch = await readAcmeChanges(runtime.pools.channel, clusterId, 0n, 100);
  t.deepEqual(
    batch!.removed.map(({ host }) => host),
    [ended.host, long.host],
  );
  t.is(await sweepAcmeTokens(api.sql), 1);
  const swept = await readAcmeChanges(runtime.pools.channel, clusterId, 0n, 100);
  t.is(swept!.to, position!.sequence);
  t.deepEqual(
    swept!.removed.map(({ host }) => host),
    [ended.host],
  );
});
