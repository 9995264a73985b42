// Names follow real nodes at real name servers: one that dies leaves the answers of BIND and of PowerDNS, and comes back.
import test, { type ExecutionContext } from 'ava';
import { freePort } from '../../bench/lib/servers.ts';
import { BindServer } from '../helpers/bind-server.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { startPowerdns } from '../helpers/dns/powerdns-server.ts';
import { type EdgeNode, startEdgeNode } from '../helpers/edge-node.ts';
import { eventually } from '../helpers/eventually.ts';
import { Api } from '../helpers/resources.ts';

const ADDRESSES = ['203.0.113.1', '203.0.113.2'];

let running: TestConsole;
let api: Api;
let clusterId: string;
let groupId: string;
let bind: BindServer;
let powerdns: Awaited<ReturnType<typeof startPowerdns>>;
const nodes: EdgeNode[] = [];

test.before('name servers, a console and two nodes', async () => {
  bind = await BindServer.start('bind.test');
  powerdns = await startPowerdns();
  const nodePort = await freePort();
  const env = { NODE_API_PORT: String(nodePort), SVC_NODE_API_URL: `https://localhost:${nodePort}` };
  running = await startTestConsole({ env: { ...env, SVC_OUTBOUND_ALLOW_CIDRS: '127.0.0.0/8' } });
  api = new Api(running);
  clusterId = await api.cluster('followed');
  groupId = (await api.ok('GET', `/node-groups?clusterId=${clusterId}`)).items[0].id;
  for (const address of ADDRESSES) {
    const listen = `127.0.0.1:${await freePort()}`;
    const node = await startEdgeNode({ client: running.client, clusterId, listen, kernelBans: 'off' });
    nodes.push(node);
    await api.ok('PUT', `/nodes/${node.nodeId}/addresses`, { addresses: [{ address, level: 0 }] });
  }
});
test.after.always(async () => {
  for (const node of nodes) await node.stop();
  await running?.stop();
  await powerdns?.stop();
  await bind?.stop();
});

interface NameServer {
  provider: string;
  zone: string;
  credentials: Record<string, string>;
  /** Sorted addresses. */
  answers(): Promise<string[]>;
}

/** The first node dies and comes back; the names of the cluster are in the zone. */
async function follow(t: ExecutionContext, { provider, zone, credentials, answers }: NameServer): Promise<void> {
  const access = await api.ok('POST', '/dns/providers', { name: provider, provider, zone, credentials });
  const lines = [{ name: 'eu', nodeGroupId: groupId }];
  const settings = { mode: 'auto', providerId: access.id, domain: `edge.${zone}`, ttl: 60, lines };
  await api.ok('PUT', `/clusters/${clusterId}/dns`, settings);
  const shows = (wanted: readonly string[], what: string) =>
    eventually(async () => `${await answers()}` === `${wanted}`, { what, timeoutMs: 120_000 });
  await shows(ADDRESSES, 'both nodes');

  const [dying] = nodes as [EdgeNode];
  const { agent, caddy } = dying.pids()!;
  const died = performance.now();
  for (const pid of [dying.supervisor.pid, agent, caddy]) process.kill(pid, 'SIGKILL');
  await shows([ADDRESSES[1]!], 'the node that lives, alone');
  t.log(`gone after ${Math.round((performance.now() - died) / 1000)} s`);
  await dying.start();
  await shows(ADDRESSES, 'the node that came back');
  const { problem } = await api.ok('GET', `/clusters/${clusterId}/dns`);
  t.is(problem, null);
}

test.serial('a node that dies leaves the answers of BIND, and comes back', async (t) => {
  const { zone, credentials } = bind;
  await follow(t, { provider: 'rfc2136', zone, credentials, answers: () => bind.answers('all.edge') });
});

test.serial('a node that dies leaves the answers of PowerDNS, and comes back', async (t) => {
  const { zone, access } = powerdns;
  const answers = async () => [...(await powerdns.resolve!(`all.edge.${zone}`, 'A'))].sort();
  await follow(t, { provider: 'powerdns', zone, credentials: access.credentials, answers });
  await eventually(async () => (await bind.answers('all.edge')).length === 0, { what: 'the zone that was left' });
});
