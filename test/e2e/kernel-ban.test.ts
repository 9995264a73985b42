// Bans on hosts with real addresses: a globally banned client cannot finish a TCP handshake, others can; a lifted ban
// lets it back in; a site ban is an HTTP answer.
import { execFile } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import test from 'ava';
import { freePort } from '../../bench/lib/servers.ts';
import { startTestConsoleProcess } from '../helpers/console.ts';
import { type EdgeNode, startEdgeNode } from '../helpers/edge-node.ts';
import { eventually } from '../helpers/eventually.ts';
import { createNetwork, type TestHost } from '../helpers/netns.ts';

const run = promisify(execFile);

/** Exit code 0 and the status for an answer; curl's code otherwise (28 = no handshake in time). */
async function get(from: TestHost, url: string): Promise<{ code: number; status: string }> {
  const words = [...from.exec, 'curl', '-sS', '-o', '/dev/null', '-w', '%{http_code}', '--connect-timeout', '1'];
  words.push('--max-time', '5', '-H', 'Host: shop.example', url);
  try {
    const { stdout } = await run(words[0]!, words.slice(1));
    return { code: 0, status: stdout };
  } catch (error) {
    return { code: (error as { code: number }).code, status: '' };
  }
}

test('a globally banned address cannot finish a TCP handshake and an allowed one can', async (t) => {
  const network = createNetwork(['edge', 'guest', 'rogue']);
  t.teardown(() => network.remove());
  const origin = createServer((_request, response) => response.end('origin'));
  await new Promise<void>((resolve) => origin.listen(0, network.gateway.ipv4, resolve));
  t.teardown(() => void origin.close());
  const nodePort = await freePort();
  const site = await startTestConsoleProcess({
    env: {
      NODE_API_HOST: '0.0.0.0',
      NODE_API_PORT: String(nodePort),
      SVC_NODE_API_URL: `https://${network.gateway.ipv4}:${nodePort}`,
    },
  });
  t.teardown(() => site.stop());
  const { client } = site;
  const clusters = await client.api<{ items: { id: string }[] }>('GET', '/clusters');
  const clusterId = clusters.items[0]!.id;
  await client.api('PUT', '/settings/origin-allow-list', { cidrs: [network.subnet.ipv4] });
  const created = await client.api<{ site: { id: string } }>('POST', '/sites', {
    domains: ['shop.example'],
    origins: [{ address: network.gateway.ipv4, port: (origin.address() as AddressInfo).port }],
  });
  const [edge, guest, rogue] = ['edge', 'guest', 'rogue'].map((name) => network.hosts.get(name)!) as [
    TestHost,
    TestHost,
    TestHost,
  ];
  const node: EdgeNode = await startEdgeNode({ client, clusterId, listen: ':80', kernelBans: 'on', exec: edge.exec });
  t.teardown(() => node.stop());

  for (const [family, url, banned] of [
    ['IPv4', `http://${edge.ipv4}/`, rogue.ipv4],
    ['IPv6', `http://[${edge.ipv6}]/`, rogue.ipv6],
  ] as const) {
    await eventually(async () => (await get(rogue, url)).status === '200', { what: `${family}: the site to answer` });
    const ban = await client.api<{ id: string }>('POST', '/bans', {
      scope: 'platform',
      cidr: banned,
      reason: 'attack',
      durationSeconds: 600,
    });
    await eventually(async () => (await get(rogue, url)).code === 28, { what: `${family}: the handshake to fail` });
    t.deepEqual(await get(guest, url), { code: 0, status: '200' }, `${family}: others are served`);
    await client.api('DELETE', `/bans/${ban.id}`);
    await eventually(async () => (await get(rogue, url)).status === '200', { what: `${family}: the lift to be felt` });
  }

  const url = `http://${edge.ipv4}/`;
  await client.api('POST', '/bans', {
    scope: 'site',
    siteId: created.site.id,
    cidr: rogue.ipv4,
    reason: 'abuse',
    durationSeconds: 600,
  });
  await eventually(async () => (await get(rogue, url)).status === '403', { what: 'the site ban to be felt' });
  t.deepEqual(await get(guest, url), { code: 0, status: '200' });

  const tables = async () => (await run(edge.exec[0]!, [...edge.exec.slice(1), 'nft', 'list', 'tables'])).stdout;
  t.regex(await tables(), /table inet svc_/);
  await node.supervisor.stop();
  t.is((await tables()).trim(), '', 'the table is gone with the node');
});
