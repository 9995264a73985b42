// The overview: how much there is. Traffic, bans, and sites by how far they are delivered.
import test from 'ava';
import { NODE_WORDS } from '../../contract/resources/overview.ts';
import { SITE_STATES, type SiteState } from '../../contract/resources/sites.ts';
import { deliveryOf, situationNow } from '../../models/overview/delivery.ts';
import { type ClusterSpan, fleetView } from '../../models/overview/overview-nodes.ts';
import { siteCounts, siteStates, sitesBehind } from '../../models/overview/overview-sites.ts';
import { siteCount, sitePage } from '../../models/sites/site.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { Overview } from '../helpers/overview.ts';
import { type ReportingNode, servedSite } from '../helpers/reporting-node.ts';
import { Api } from '../helpers/resources.ts';

let running: TestConsole;
let api: Api;
let overview: Overview;
let clusterId: string;
let siteId: string;
let node: ReportingNode;

test.before('start', async () => {
  running = await startTestConsole();
  api = new Api(running);
  overview = new Overview(api);
  ({ clusterId, siteId, node } = await servedSite(running, api));
});
test.after.always('stop', async () => {
  node?.stop();
  await running?.stop();
});

test.serial('requests per second are those of the latest minute that every node could report', async (t) => {
  const now = Math.floor(Date.now() / 60_000) * 60;
  const minutes = [
    [now - 600, 60n],
    [now - 180, 600n],
    [now - 120, 1200n],
    [now, 999n],
  ].map(([minute, requests]) => ({ siteId, minute: BigInt(minute!), requests: requests as bigint }));
  await node.connection.call('reportStats', { sequence: 1n, minutes });
  const series = await eventually(
    async () => {
      const answer = await api.ok('GET', '/overview/traffic?hours=1');
      return answer.from !== null && answer;
    },
    { everyMs: 500 },
  );
  t.is(Date.parse(series.from), (now - 600) * 1000);
  const values: number[] = series.requestsPerSecond;
  t.deepEqual(values.slice(0, 9), [1, 0, 0, 0, 0, 0, 0, 10, 20]);
  t.true(values.every((value) => value <= 20));
  const { traffic } = await eventually(async () => {
    const answer = await overview.get();
    return answer.traffic !== null && answer;
  });
  // A minute may have begun since.
  t.true([20, 0, 999 / 60].includes(traffic.requestsPerSecond), JSON.stringify(traffic));
  // A batch that comes twice counts once here, too.
  await node.connection.call('reportStats', { sequence: 1n, minutes });
  t.deepEqual(await api.sql('usage_mark').where({ cluster_id: clusterId }), []);
  const rows = await api.sql('cluster_request_minute').where({ cluster_id: clusterId });
  t.is(
    rows.reduce((sum, { requests }) => sum + Number(requests), 0),
    60 + 600 + 1200 + 999,
  );
});

test.serial('bans in force are counted by who made them; ended ones are not', async (t) => {
  const before = (await overview.get()).bans;
  const ban = (cidr: string, durationSeconds: number) =>
    api.ok('POST', '/bans', { scope: 'platform', cidr, reason: 'abuse', durationSeconds });
  await ban('198.18.0.1', 600);
  const { id } = await ban('198.18.0.2', 600);
  await ban('198.18.0.3', 600);
  await api.ok('DELETE', `/bans/${id}`);
  await api
    .sql('ban')
    .where({ cidr: '198.18.0.3/32' })
    .update({ expires_at: new Date(Date.now() - 1000) });
  const bans = await eventually(async () => {
    const now = (await overview.get()).bans;
    return now.manual === before.manual + 1 && now;
  });
  t.is(bans.automatic, 0);
  await node.beat(await node.onTarget());
});

/** The state of each site, one by one, by id. */
async function naiveStates(where: Record<string, string> = {}): Promise<Map<string, SiteState>> {
  const columns = { id: 'id', enabled: 'enabled', clusterId: 'cluster_id', updatedAt: 'updated_at' };
  const sites = await api.sql('site').where(where).select(columns);
  const deliveries = await deliveryOf(api.sql, sites, situationNow);
  return new Map(
    [...deliveries].map(([id, { state, unserved, unknown }]) => [
      id,
      unserved ? 'unserved' : unknown ? 'unknown' : state,
    ]),
  );
}

const counted = (states: ReadonlyMap<string, SiteState>) =>
  Object.fromEntries(
    SITE_STATES.map((state) => [state, [...states.values()].filter((one) => one === state).length]),
  ) as Record<SiteState, number>;

test.serial('sites by delivery are as if each were asked, counted and listed', async (t) => {
  const other = await api.cluster('states');
  /** Lists filtered by each state have the sites that are in it, and their number. */
  const compareLists = async (spans: ClusterSpan[], naive: ReadonlyMap<string, SiteState>, what: string) => {
    for (const is of SITE_STATES) {
      const filter = { state: { is, spans }, sort: 'createdAt' as const };
      const ids = (await sitePage(api.sql, filter, 100, 0)).map(({ id }) => id);
      const expected = [...naive].flatMap(([id, state]) => (state === is ? [id] : [])).sort();
      t.deepEqual(ids, expected, `${what}: ${is}`);
      t.is(await siteCount(api.sql, filter), expected.length, `${what}: ${is}`);
    }
  };
  const compare = async (what: string) => {
    const { spans } = await fleetView(api.sql, NODE_WORDS);
    const naive = await naiveStates();
    t.deepEqual(siteStates(await siteCounts(api.sql), await sitesBehind(api.sql, spans), spans), counted(naive), what);
    await compareLists(spans, naive, what);
    const own = await fleetView(api.sql, NODE_WORDS, other);
    const states = siteStates(await siteCounts(api.sql, [other]), await sitesBehind(api.sql, own.spans), own.spans);
    const of = await naiveStates({ cluster_id: other });
    t.deepEqual(states, counted(of), what);
    await compareLists(own.spans, of, `${what}, of one cluster`);
  };
  await compare('a cluster without sites');
  const made: string[] = [];
  for (let index = 0; index < 6; index++) made.push((await api.site(other, `state-${index}.example`)).id);
  await compare('no node');
  // Nothing is on its way but what is changed from here on.
  const settle = (ids: string[], at: number) =>
    api
      .sql('site')
      .whereIn('id', ids)
      .update({ updated_at: new Date(at) });
  await settle(made, 0);
  await settle(made.slice(4), Date.now() + 3_600_000);
  const behind = await api.node(other, 'behind');
  const ahead = await api.node(other, 'ahead');
  await compare('nodes without a configuration');
  const move = async (id: string, revision: number, more: object = {}) => {
    const { epoch } = await api.sql('cluster_head').where({ cluster_id: other }).first('epoch');
    await api
      .sql('node_state')
      .where({ node_id: id })
      .update({ epoch, track: 'S', revision, ...more });
  };
  const head = async () => Number((await api.sql('cluster_head').where({ cluster_id: other }).first()).revision);
  await move(ahead, await head());
  await compare('one node has none');
  await move(behind, (await head()) - 2);
  await compare('one node is two behind');
  await move(ahead, (await head()) - 1);
  await compare('nobody has the newest');
  await settle(made, 0);
  await compare('nothing is on its way any more');
  await api.ok('PUT', `/sites/${made[0]}/enabled`, { enabled: false });
  await api.ok('PATCH', `/sites/${made[1]}`, { domains: ['state-1.example', 'again.example'] });
  await compare('a site was disabled, another changed');
  await move(ahead, await head());
  await move(behind, await head());
  await compare('all have everything');
  await move(behind, await head(), { failed: JSON.stringify([{ kind: 'site', id: made[2], running: true }]) });
  await compare('one could not apply a site');
  await move(behind, await head(), { failed: '[]', data_plane_healthy: false });
  await compare('one is not healthy');
  const seen = (at: Date) => api.sql('node_state').whereIn('node_id', [ahead, behind]).update({ last_seen_at: at });
  await seen(new Date(0));
  await compare('all are silent');
  await seen(new Date());
  const down = JSON.stringify([{ kind: 'site', id: made[2], running: false }]);
  await move(behind, await head(), { failed: down, data_plane_healthy: true });
  await compare('one does not serve a site');
  await move(ahead, await head(), { failed: down });
  await compare('none serves a site');
  await move(behind, (await head()) - 20, { failed: '[]' });
  await compare('one could not apply a site, the other has not got it');
  await move(ahead, await head(), { failed: '[]' });
  await api.ok('PUT', `/sites/${made[0]}/enabled`, { enabled: true });
  await move(behind, (await head()) - 1);
  await move(ahead, (await head()) - 1);
  await settle(made, 0);
  await compare('a site was enabled again, which no node knows');
  await move(ahead, await head());
  await move(behind, await head());
  await api.ok('PATCH', `/sites/${made[5]}`, { domains: ['~^held[.]example$'] });
  const held = (await api.site(other, '.held.example')).id;
  made.push(held);
  await settle(made, 0);
  await move(ahead, await head());
  await move(behind, await head(), { features: ['domains-v2'] });
  await compare('one holds two sites');
  await move(behind, await head(), { features: [] });
  await compare('all hold two sites, and serve one of them in the version before');
  await move(behind, 0);
  await compare('all hold two sites, and one has not got them');
  await move(ahead, await head(), { features: ['domains-v2'] });
  await move(behind, await head(), { features: ['domains-v2'] });
  await move(behind, await head(), { data_plane_healthy: true });
  await api.ok('PATCH', `/sites/${made[3]}/protection`, { powDifficulty: 12 });
  await compare('the protection of a site changed');
  await move(ahead, await head());
  await move(behind, await head(), { failed: JSON.stringify([{ kind: 'protection', id: made[3], running: false }]) });
  await compare('one could not apply the protection of a site');
  await move(behind, await head(), { failed: '[]' });
  await api.ok('PATCH', `/sites/${made[3]}/protection`, { powDifficulty: 16 });
  await compare('an entry was removed');
  await api.ok('PATCH', `/sites/${made[4]}/protection`, { logJa4: true });
  await move(ahead, await head(), { features: ['ja4-v1'] });
  await move(behind, await head());
  await compare('one holds the protection of a site');
  await api.sql('node').whereIn('id', [behind, ahead]).delete();
  for (const id of made) await api.ok('DELETE', `/sites/${id}`);
  await api.ok('DELETE', `/clusters/${other}`);
});
