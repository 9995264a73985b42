// The overview: each way in which a node needs somebody, as it comes and goes.
import test from 'ava';
import { NODE_WORDS } from '../../contract/resources/overview.ts';
import { fleetView } from '../../models/overview/overview-nodes.ts';
import { siteCounts, siteStates, sitesBehind } from '../../models/overview/overview-sites.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { connectAs } from '../helpers/fleet.ts';
import { Overview } from '../helpers/overview.ts';
import { type ReportingNode, servedSite } from '../helpers/reporting-node.ts';
import { Api } from '../helpers/resources.ts';

const DAY = 86_400_000;

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
  await eventually(async () => (await overview.get()).nodeStates.ok === 1);
});
test.after.always('stop', async () => {
  node?.stop();
  await running?.stop();
});

type Deed = () => Promise<unknown>;
const clientIp = (settings: { mode: string }) => api.ok('PUT', `/clusters/${clusterId}/client-ip`, { settings });
const FEATURES = ['bans-v1', 'challenge-v1', 'client-ip-v1'];

interface NodeCase {
  kind: string;
  word: string;
  begin: Deed;
  end: Deed;
  level?: string;
}

const NODE_CASES: NodeCase[] = [
  {
    kind: 'nodes_unhealthy',
    word: 'offline',
    // As 45 s of silence leave it.
    begin: () => node.fallSilent(),
    end: async () => node.beat(await node.onTarget()),
  },
  {
    kind: 'nodes_unhealthy',
    word: 'refused',
    begin: async () => {
      await api.sql('node_certificate').where({ node_id: node.id }).update({ state: 'superseded' });
      await eventually(async () => {
        const stranger = connectAs(running, node.identity);
        const answer = await stranger.call('heartbeat', {}).then(
          () => 'accepted',
          () => 'refused',
        );
        stranger.destroy();
        return answer === 'refused';
      });
    },
    end: async () => {
      await api.sql('node_certificate').where({ node_id: node.id }).update({ state: 'active' });
      node.reconnect();
      await eventually(async () => {
        await node.beat(await node.onTarget());
        return true;
      });
    },
  },
  {
    kind: 'nodes_unhealthy',
    word: 'certificate_expired',
    begin: () =>
      api
        .sql('node_certificate')
        .where({ node_id: node.id })
        .update({ not_after: new Date(Date.now() - DAY) }),
    end: () =>
      api
        .sql('node_certificate')
        .where({ node_id: node.id })
        .update({ not_after: new Date(Date.now() + 30 * DAY) }),
  },
  {
    kind: 'nodes_unhealthy',
    word: 'apply_failed',
    begin: async () =>
      node.beat({
        ...(await node.onTarget()),
        failed: [{ kind: 'site', id: siteId, reason: 'broken', runningHash: new Uint8Array(32) }],
      }),
    end: async () => node.beat(await node.onTarget()),
  },
  {
    kind: 'nodes_unhealthy',
    word: 'data_plane_unhealthy',
    begin: async () => node.beat({ ...(await node.onTarget()), dataPlaneHealthy: false }),
    end: async () => node.beat(await node.onTarget()),
  },
  {
    kind: 'nodes_lagging',
    word: 'upgrade_required',
    level: 'watch',
    begin: async () => {
      await api.ok('PATCH', `/sites/${siteId}`, { domains: ['shop.example', '.shop.example'] });
      await eventually(async () => {
        await node.beat();
        return (await api.ok('GET', `/nodes/${node.id}`)).upgradeRequired;
      });
    },
    end: async () => {
      await api.ok('PATCH', `/sites/${siteId}`, { domains: ['shop.example'] });
      await eventually(async () => {
        await node.beat(await node.onTarget());
        return !(await api.ok('GET', `/nodes/${node.id}`)).upgradeRequired;
      });
    },
  },
  {
    kind: 'nodes_lagging',
    word: 'config_behind',
    level: 'watch',
    begin: async () => {
      await api.ok('PATCH', `/sites/${siteId}`, { name: 'Shop' });
      await api.ok('PATCH', `/sites/${siteId}`, { domains: ['shop.example', 'www.shop.example'] });
      // On its way until it is 10 s old.
      await api
        .sql('config_revision')
        .where({ cluster_id: clusterId })
        .update({
          created_at: api.sql.raw("created_at - interval '1 minute'"),
        });
      await api
        .sql('node')
        .where({ id: node.id })
        .update({ enrolled_at: new Date(Date.now() - DAY) });
    },
    end: async () => node.beat(await node.onTarget()),
  },
  {
    kind: 'nodes_lagging',
    word: 'bans_behind',
    level: 'watch',
    begin: async () => {
      await api.ok('POST', '/bans', { scope: 'platform', cidr: '203.0.113.9', reason: 'abuse', durationSeconds: 600 });
      await api.sql('ban_change').update({ changed_at: api.sql.raw("changed_at - interval '1 minute'") });
    },
    end: async () => node.beat(await node.onTarget()),
  },
  {
    kind: 'nodes_bans_unapplied',
    word: 'ok',
    level: 'watch',
    begin: async () => {
      const { items } = await api.ok('GET', '/bans');
      const target = await node.onTarget();
      await node.beat({ ...target, bans: { ...target.bans, unappliedIds: [items[0].id], unapplied: 1n } });
    },
    end: async () => node.beat(await node.onTarget()),
  },
  {
    kind: 'node_certificates_ending',
    word: 'ok',
    begin: () =>
      api
        .sql('node_certificate')
        .where({ node_id: node.id })
        .update({ not_after: new Date(Date.now() + 5 * DAY) }),
    end: () =>
      api
        .sql('node_certificate')
        .where({ node_id: node.id })
        .update({ not_after: new Date(Date.now() + 30 * DAY) }),
  },
  {
    kind: 'nodes_proxy_peers_unset',
    word: 'ok',
    begin: async () => {
      await clientIp({ mode: 'proxy_protocol' });
      await node.beat({ ...(await node.onTarget()), info: { features: FEATURES, proxyPeersUnset: true } });
    },
    end: async () => node.beat({ ...(await node.onTarget()), info: { features: FEATURES, proxyPeersUnset: false } }),
  },
];

for (const { kind, word, level = 'act', begin, end } of NODE_CASES) {
  test.serial(`${kind}: a node is ${word}, and is not any more`, async (t) => {
    await begin();
    const item = await overview.shown(kind, ({ named }) => named[0].reason === word);
    t.like(item, { level, clusterId, clusterName: 'hong-kong', count: 1, version: '', problem: null });
    t.deepEqual(item.named, [{ type: 'node', id: node.id, name: item.named[0].name, reason: word }]);
    t.is(item.revision !== null, kind === 'nodes_lagging');
    await end();
    await overview.gone(kind);
    await eventually(async () => (await overview.get()).nodeStates.ok === 1);
  });
}

test.serial('nobody asks for proxy peers in the modes in which nobody sends a PROXY header', async (t) => {
  const believing = { info: { features: FEATURES, proxyPeersUnset: true } };
  await node.beat(believing);
  await overview.shown('nodes_proxy_peers_unset');
  await clientIp({ mode: 'direct' });
  await node.beat({ ...(await node.onTarget()), ...believing });
  await overview.gone('nodes_proxy_peers_unset');
  t.like((await api.ok('GET', `/nodes/${node.id}`)).supportedFeatures, FEATURES);
  await node.beat(await node.onTarget());
});

test.serial('a change that has only just been published makes nobody look', async (t) => {
  await api.ok('PATCH', `/sites/${siteId}`, { domains: ['shop.example'] });
  const fleet = await fleetView(api.sql, NODE_WORDS);
  t.deepEqual(fleet.groups, []);
  t.is(fleet.states.ok, 1);
  const states = siteStates(await siteCounts(api.sql), await sitesBehind(api.sql, fleet.spans), fleet.spans);
  t.deepEqual(states, { live: 0, partial: 1, pending: 0, unserved: 0, unknown: 0, disabled: 0 });
  await node.beat(await node.onTarget());
});
