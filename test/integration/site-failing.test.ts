// Sites whose visitors get errors: nodes tell, the overview says which, why, since when and after which change.
import test from 'ava';
import { freePort } from '../../bench/lib/servers.ts';
import type { TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { startLocalEdge, startLocalOrigin, startNodeConsole } from '../helpers/local-edge.ts';
import { Overview } from '../helpers/overview.ts';
import { ReportingNode } from '../helpers/reporting-node.ts';
import { Api, type Body } from '../helpers/resources.ts';

const FEATURES = ['bans-v1', 'challenge-v1'];

let running: TestConsole;
let api: Api;
let overview: Overview;

test.before('start', async () => {
  running = await startNodeConsole();
  api = new Api(running);
  overview = new Overview(api);
});
test.after.always('stop', () => running?.stop());

const failing = async (clusterId: string): Promise<Body[]> =>
  (await overview.get(clusterId)).attention.filter(({ kind }: Body) => kind === 'site_failing');
const told = (siteId: string, more: object = {}) => ({
  siteId,
  requests: 200n,
  failed: 50n,
  sinceMs: BigInt(Date.now() - 30_000),
  cause: 'origin-timeout',
  ...more,
});

test('what several nodes tell of a site is one item, with the share and cause of most of it', async (t) => {
  const clusterId = await api.cluster('told');
  const { id, name } = await api.site(clusterId, 'told.example', { name: 'Told' });
  const nodes = [await ReportingNode.enroll(running, clusterId, FEATURES)];
  nodes.push(await ReportingNode.enroll(running, clusterId, FEATURES));
  t.teardown(() => {
    for (const node of nodes) node.stop();
  });
  const [one, other] = nodes as [ReportingNode, ReportingNode];
  const earlier = Date.now() - 40_000;
  await one.beat({ failingSites: [told(id)] });
  await other.beat({
    failingSites: [told(id, { failed: 150n, sinceMs: BigInt(earlier), cause: 'origin-dns' })],
  });
  const item = await eventually(async () => (await failing(clusterId)).find(({ percent }) => percent === 50));
  t.like(item, {
    level: 'act',
    clusterName: 'told',
    count: 1,
    problem: 'origin-dns',
    at: new Date(earlier).toISOString(),
  });
  t.deepEqual(item.named, [{ type: 'site', id, name, reason: null }]);
  await other.fallSilent();
  await eventually(async () => (await failing(clusterId)).find(({ problem }) => problem === 'origin-timeout'), {
    what: 'a silent node tells nothing',
  });
  await one.beat({});
  await eventually(async () => (await failing(clusterId)).length === 0);
});

test('what makes no sense is left out, and the site of another cluster is no business of the node', async (t) => {
  const clusterId = await api.cluster('odd');
  const { id } = await api.site(clusterId, 'odd.example');
  const elsewhere = (await api.site(await api.cluster('far'), 'far.example')).id;
  const node = await ReportingNode.enroll(running, clusterId, FEATURES);
  t.teardown(() => node.stop());
  const odd = [
    told(elsewhere),
    told('no-such-site'),
    told("'; drop table site; --"),
    told(id, { failed: 0n }),
    told(id, { requests: 0n }),
    told(id, { sinceMs: 0n }),
    told(id, { sinceMs: 2n ** 62n }),
    told(id, { requests: 2n ** 64n - 1n, failed: 2n ** 64n - 1n, cause: 'x'.repeat(1000) }),
    told(id, { failed: 1n }),
  ];
  await node.beat({ failingSites: odd });
  const items = await eventually(async () => {
    const found = await failing(clusterId);
    return found.length > 0 && found;
  });
  t.is(items.length, 1);
  t.like(items[0], { problem: 'edge', percent: 100 });
  await node.beat({ failingSites: Array.from({ length: 1000 }, (_, n) => told(`s${n}`)) });
  await eventually(async () => (await failing(clusterId)).length === 0);
});

test('the origin of a site dies after a change: the overview names site, cause and revision, until it responds again', async (t) => {
  const clusterId = await api.cluster('real');
  const { address, port } = await startLocalOrigin(t, api, (_request, response) => void response.end('ok'));
  const edge = await startLocalEdge(t, running, clusterId);
  const { id } = await api.site(clusterId, 'real.example', { origins: [{ address, port }] });
  const ask = async () => (await edge.ask('real.example')).status;
  await eventually(async () => (await ask()) === 200);
  t.deepEqual(await failing(clusterId), []);
  // The change that breaks it.
  const dead = await freePort();
  const { revision } = await api.ok('PATCH', `/sites/${id}`, { origins: [{ address, port: dead }] });
  await eventually(async () => (await ask()) === 502);
  const item = await eventually(async () => {
    await ask();
    return (await failing(clusterId))[0];
  });
  t.like(item, { level: 'act', problem: 'origin-unreachable', revision });
  t.is(item.named[0].id, id);
  await api.ok('POST', `/clusters/${clusterId}/revisions/${revision}/undo`, {});
  await eventually(
    async () => {
      await ask();
      return (await failing(clusterId)).length === 0;
    },
    { what: 'the end of it', everyMs: 500 },
  );
});
