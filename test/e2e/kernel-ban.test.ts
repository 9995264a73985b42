// Bans on hosts with real addresses: a globally banned client cannot finish a TCP handshake, others can; a lifted ban
// lets it back in; a site ban is an HTTP answer.
import { execFile } from 'node:child_process';
import { copyFileSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import test from 'ava';
import { freePort } from '../../bench/lib/servers.ts';
import { startTestConsoleProcess, type TestConsoleProcess } from '../helpers/console.ts';
import { type EdgeNode, startEdgeNode } from '../helpers/edge-node.ts';
import { eventually } from '../helpers/eventually.ts';
import { createNetwork, type TestHost, type TestNetwork } from '../helpers/netns.ts';
import { EdgeClient, edgePaths, existingRunFolders, runPaths } from '../helpers/node-files.ts';

const run = promisify(execFile);

/** Exit code 0 and the status for an answer; curl's code otherwise (28 = no handshake in time). */
async function get(from: TestHost, url: string, name = 'shop.example'): Promise<{ code: number; status: string }> {
  const words = [...from.exec, 'curl', '-sS', '-o', '/dev/null', '-w', '%{http_code}', '--connect-timeout', '1'];
  words.push('--max-time', '5', '-H', `Host: ${name}`, url);
  try {
    const { stdout } = await run(words[0]!, words.slice(1));
    return { code: 0, status: stdout };
  } catch (error) {
    return { code: (error as { code: number }).code, status: '' };
  }
}

let network: TestNetwork;
let site: TestConsoleProcess;
let node: EdgeNode;
let nodePort: number;
let siteId: string;
let clusterId: string;
const undo: (() => Promise<void> | void)[] = [];
const host = (name: string): TestHost => network.hosts.get(name)!;

test.before('a console, an edge and two visitors on hosts of their own', async () => {
  network = createNetwork(['edge', 'guest', 'rogue']);
  undo.push(() => network.remove());
  const origin = createServer((_request, response) => response.end('origin'));
  await new Promise<void>((resolve) => origin.listen(0, network.gateway.ipv4, resolve));
  undo.push(() => void origin.close());
  nodePort = await freePort();
  site = await startTestConsoleProcess({
    env: {
      NODE_API_HOST: '0.0.0.0',
      NODE_API_PORT: String(nodePort),
      SVC_NODE_API_URL: `https://${network.gateway.ipv4}:${nodePort}`,
    },
  });
  undo.push(() => site.stop());
  const { client } = site;
  const clusters = await client.api<{ items: { id: string }[] }>('GET', '/clusters');
  await client.api('PUT', '/settings/origin-allow-list', { cidrs: [network.subnet.ipv4] });
  const created = await client.api<{ site: { id: string } }>('POST', '/sites', {
    domains: ['shop.example'],
    origins: [{ address: network.gateway.ipv4, port: (origin.address() as AddressInfo).port }],
  });
  siteId = created.site.id;
  clusterId = clusters.items[0]!.id;
  node = await startEdgeNode({ client, clusterId, listen: ':80', kernelBans: 'on', exec: host('edge').exec });
  undo.push(() => node.stop());
});

test.after.always('take everything down', async () => {
  for (const each of undo.reverse()) await each();
});

/** Runs nft on the edge's host. */
const nft = async (...words: string[]) => {
  const [program, ...rest] = [...host('edge').exec, 'nft', ...words];
  return (await run(program!, rest)).stdout;
};

const tableName = (tables: string) => /svc_\w+/.exec(tables)?.[0] ?? '';

test.serial('a globally banned address cannot finish a TCP handshake and an allowed one can', async (t) => {
  const { client } = site;
  const [edge, guest, rogue] = [host('edge'), host('guest'), host('rogue')];
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
    const { clusters } = await client.api<{ clusters: { outcome: string; kernelNodes: number }[] }>(
      'GET',
      `/addresses/${banned}`,
    );
    t.like(clusters[0], { outcome: 'dropped', kernelNodes: 1 }, `${family}: its dossier says so`);
    t.deepEqual(await get(guest, url), { code: 0, status: '200' }, `${family}: others are served`);
    await client.api('DELETE', `/bans/${ban.id}`);
    await eventually(async () => (await get(rogue, url)).status === '200', { what: `${family}: the lift to be felt` });
  }

  const url = `http://${edge.ipv4}/`;
  const { id } = await client.api<{ id: string }>('POST', '/bans', {
    scope: 'site',
    siteId,
    cidr: rogue.ipv4,
    reason: 'abuse',
    durationSeconds: 600,
  });
  await eventually(async () => (await get(rogue, url)).status === '403', { what: 'the site ban to be felt' });
  t.deepEqual(await get(guest, url), { code: 0, status: '200' });
  await client.api('DELETE', `/bans/${id}`);
  await eventually(async () => (await get(rogue, url)).status === '200', { what: 'the lift of the site ban' });
});

/** The capabilities of a thread, by the names of /proc. */
function capabilities(status: string): Record<string, bigint> {
  const sets = [...readFileSync(status, 'utf8').matchAll(/^Cap(\w+):\s*([0-9a-f]+)$/gm)];
  return Object.fromEntries(sets.map(([, name, bits]) => [name!, BigInt(`0x${bits!}`)]));
}

test.serial('Caddy holds the capability for ports and no other, and is refused the private key', async (t) => {
  const CAP_NET_BIND_SERVICE = 1n << 10n;
  const CAP_NET_ADMIN = 1n << 12n;
  const { agent, caddy } = node.pids()!;
  const threads = readdirSync(`/proc/${caddy}/task`);
  t.true(threads.length > 1);
  for (const thread of threads) {
    const sets = capabilities(`/proc/${caddy}/task/${thread}/status`);
    t.deepEqual(sets, {
      Inh: 0n,
      Amb: 0n,
      Prm: CAP_NET_BIND_SERVICE,
      Eff: CAP_NET_BIND_SERVICE,
      Bnd: CAP_NET_BIND_SERVICE,
    });
  }
  t.is(capabilities(`/proc/${agent}/status`).Eff! & CAP_NET_ADMIN, CAP_NET_ADMIN, 'the agent bans in the kernel');

  // The running process itself tries to read the key, in place of its journal.
  const { configJournal, edgeDir } = edgePaths(node.stateDir);
  const client = new EdgeClient(runPaths(existingRunFolders(node.stateDir)[0]!).socket);
  const reload = async (): Promise<string> => {
    const refused = await client.reloadConfig().then(() => '', String);
    return [refused, ...(await client.getStatus()).warnings].join();
  };
  process.kill(agent, 'SIGSTOP');
  try {
    renameSync(configJournal, `${edgeDir}/aside`);
    symlinkSync('../node.key', configJournal);
    t.regex(await reload(), /permission denied/, 'a kernel without Landlock cannot show this');
    rmSync(configJournal);
    copyFileSync(`${node.stateDir}/node.key`, configJournal);
    const makesNoSense = await reload();
    t.not(makesNoSense, '');
    t.notRegex(makesNoSense, /permission denied/, 'the same file where Caddy may read is read');
  } finally {
    renameSync(`${edgeDir}/aside`, configJournal);
    await reload();
    process.kill(agent, 'SIGCONT');
    client.close();
  }
  await eventually(async () => (await get(host('guest'), `http://${host('edge').ipv4}/`)).status === '200', {
    what: 'the site to answer',
  });
});

test.serial(
  'who asks for unknown hosts again and again is dropped by the kernel of that node until it is lifted',
  async (t) => {
    const { client } = site;
    const [edge, guest, rogue] = [host('edge'), host('guest'), host('rogue')];
    const url = `http://${edge.ipv4}/`;
    await client.api('PUT', `/clusters/${clusterId}/unknown-hosts`, {
      scan: { enabled: true, threshold: 10, banSeconds: 600 },
    });
    await eventually(async () => (await get(rogue, url, 'nobody.example')).code === 28, {
      everyMs: 50,
      what: 'the handshake to fail',
    });
    t.deepEqual(await get(guest, url), { code: 0, status: '200' }, 'others are served');
    t.regex(await nft('list', 'table', 'inet', tableName(await nft('list', 'tables'))), new RegExp(rogue.ipv4));
    const listed = () =>
      client.api<{ items: { id: string; scope: string; reason: string; node: { id: string } }[] }>(
        'GET',
        `/bans?source=auto&address=${rogue.ipv4}`,
      );
    const [ban] = await eventually(
      async () => {
        const { items } = await listed();
        return items.length > 0 && items;
      },
      { everyMs: 250, what: 'the console to know it' },
    );
    t.like(ban, { scope: 'platform', reason: 'unknown_host_scan' });
    t.is(ban!.node.id, node.nodeId);
    await client.api('DELETE', `/bans/${ban!.id}`);
    await eventually(async () => (await get(rogue, url)).status === '200', { what: 'the lift to be felt' });
    await client.api('PUT', `/clusters/${clusterId}/unknown-hosts`, { scan: { enabled: false } });
  },
);

test.serial('a node whose link to the console is cut serves on, and follows once the link is back', async (t) => {
  const { client } = site;
  const [edge, guest, rogue] = [host('edge'), host('guest'), host('rogue')];
  const url = `http://${edge.ipv4}/`;
  // Packets vanish without a word, as behind a dead router: no end of a connection tells either side.
  await nft(`table inet cut {
    chain out { type filter hook output priority 0; tcp dport ${nodePort} drop; }
    chain in { type filter hook input priority 0; tcp sport ${nodePort} drop; }
  }`);
  await client.api('POST', '/bans', { scope: 'platform', cidr: rogue.ipv4, reason: 'attack', durationSeconds: 600 });
  await eventually(
    async () => {
      const state = await client.api<{ online: boolean }>('GET', `/nodes/${node.nodeId}`);
      return !state.online;
    },
    { timeoutMs: 90_000, everyMs: 500, what: 'the console to see the node offline' },
  );
  t.deepEqual(await get(guest, url), { code: 0, status: '200' }, 'visitors are served');
  t.deepEqual(await get(rogue, url), { code: 0, status: '200' }, 'the ban has not come through');
  await nft('delete', 'table', 'inet', 'cut');
  await eventually(async () => (await get(rogue, url)).code === 28, { timeoutMs: 90_000, what: 'the ban to arrive' });
  t.deepEqual(await get(guest, url), { code: 0, status: '200' });
});

test.serial('the kernel table goes with the node', async (t) => {
  t.regex(await nft('list', 'tables'), /table inet svc_/);
  await node.supervisor.stop();
  t.is((await nft('list', 'tables')).trim(), '');
});
