// A node whose disk is full: it starts, follows changes and bans, survives the death of each of its processes, and writes
// everything when there is room again.
import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import test from 'ava';
import { freePort } from '../../bench/lib/servers.ts';
import { type EdgeNode, startEdgeNode } from '../helpers/edge-node.ts';
import { edgeGet } from '../helpers/edge-request.ts';
import { eventually } from '../helpers/eventually.ts';
import { CLIENT_IP_HEADER, type Installation, startInstallation } from '../helpers/installation.ts';
import { edgePaths, existingRunFolders } from '../helpers/node-files.ts';

const DISK = '4m';
const VISITOR = '192.0.2.10';
/** Mounting a small disk takes root. */
const asRoot = process.getuid!() === 0 ? test.serial : test.serial.skip;

let installation: Installation;
let disk: string;
let node: EdgeNode;
let edge: { host: string; port: number };

function mount(...args: string[]): void {
  const { status, stderr } = spawnSync(args[0]!, args.slice(1), { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${args.join(' ')}: ${stderr}`);
}

test.before('a node on a small disk', async () => {
  if (process.getuid!() !== 0) return;
  installation = await startInstallation();
  disk = mkdtempSync(join(tmpdir(), 'small-disk-'));
  mount('mount', '-t', 'tmpfs', '-o', `size=${DISK}`, 'none', disk);
  edge = { host: '127.0.0.1', port: await freePort() };
  const { client, clusterId } = installation;
  node = await startEdgeNode({
    client,
    clusterId,
    listen: `127.0.0.1:${edge.port}`,
    kernelBans: 'off',
    stateDir: join(disk, 'state'),
  });
  await createSite('kept.example');
  await serves('kept.example');
});

test.afterEach.always('show errors', (t) => {
  if (t.passed) return;
  for (const line of installation.errors()) t.log(line);
  t.log(node.log().slice(-6000));
});

test.after.always('stop everything', async () => {
  await node?.stop();
  await installation?.stop();
  if (disk === undefined) return;
  mount('umount', '-l', disk);
  rmSync(disk, { recursive: true });
});

async function createSite(domain: string, aliases = 0): Promise<void> {
  const names = Array.from({ length: aliases }, (_, index) => `${'alias'.repeat(10)}-${index}.${domain}`);
  await installation.client.api('POST', '/sites', { domains: [domain, ...names], origins: [installation.origin] });
}

async function ban(cidr: string): Promise<void> {
  await installation.client.api('POST', '/bans', { scope: 'platform', cidr, reason: 'attack', durationSeconds: 3600 });
}

/** Status the node answers a visitor with; 0 while it does not answer. */
async function answer(host: string, visitor = VISITOR): Promise<number> {
  return edgeGet(edge, host, { [CLIENT_IP_HEADER]: visitor }).then(
    ({ status }) => status,
    () => 0,
  );
}

const serves = (host: string) => eventually(async () => (await answer(host)) === 200, { what: host });
const bans = (visitor: string) =>
  eventually(async () => (await answer('kept.example', visitor)) === 403, { what: `the ban of ${visitor}` });

/** Leaves no room for a single byte more. */
function fillDisk(): void {
  const fd = openSync(join(disk, 'ballast'), 'a');
  for (const size of [65_536, 4096, 1]) {
    try {
      for (;;) if (writeSync(fd, Buffer.alloc(size)) < size) break;
    } catch {
      // No room for so much.
    }
  }
  closeSync(fd);
}

function status() {
  const file = join(existingRunFolders(node.stateDir)[0]!, 'status.json');
  return JSON.parse(readFileSync(file, 'utf8')) as { lastError: string; config: { revision: string } };
}

asRoot('a change and a ban are in force although nothing can be written, and the console is told', async (t) => {
  fillDisk();
  await createSite('late.example');
  await serves('late.example');
  await ban('192.0.2.66');
  await bans('192.0.2.66');
  // More than the rest of a block.
  for (let index = 0; index < 4; index++) await createSite(`more${index}.example`, 40);
  await serves('more3.example');
  const told = async (): Promise<boolean> => {
    const { applyMessage } = await installation.client.api<{ applyMessage: string }>('GET', `/nodes/${node.nodeId}`);
    return applyMessage.includes('not on disk');
  };
  // The access key may ask only so often.
  await eventually(told, { everyMs: 1000, what: 'the node to say so' });
  t.pass();
});

asRoot('a Caddy that died is started again and serves what its journal lacks', async (t) => {
  const { caddy } = node.pids()!;
  process.kill(caddy, 'SIGKILL');
  await eventually(
    () => {
      const pids = node.pids();
      return pids !== undefined && pids.caddy !== caddy;
    },
    { what: 'another Caddy' },
  );
  for (const host of ['kept.example', 'late.example', 'more3.example']) await serves(host);
  await bans('192.0.2.66');
  t.true(node.supervisor.running());
});

asRoot('the node starts again on the full disk, after a stop and after a kill of its supervisor', async (t) => {
  await node.supervisor.stop();
  await node.start();
  await serves('more3.example');
  await bans('192.0.2.66');
  const before = node.pids()!;
  process.kill(node.supervisor.pid, 'SIGKILL');
  await node.start();
  await eventually(() => node.pids() !== undefined, { what: 'both processes' });
  t.not(node.pids()!.caddy, before.caddy);
  for (const host of ['kept.example', 'late.example', 'more3.example']) await serves(host);
  await bans('192.0.2.66');
});

asRoot('a damaged journal is opened on the full disk and nothing of it is lost', async (t) => {
  await node.supervisor.stop();
  const { configJournal } = edgePaths(node.stateDir);
  const bytes = readFileSync(configJournal);
  const at = bytes.indexOf('kept.example');
  t.true(at > 0);
  const fd = openSync(configJournal, 'r+');
  writeSync(fd, Buffer.from([bytes[at]! ^ 1]), 0, 1, at);
  closeSync(fd);
  const damaged = readFileSync(configJournal);
  await node.start();
  for (const host of ['kept.example', 'late.example', 'more3.example']) await serves(host);
  await bans('192.0.2.66');
  t.deepEqual(readFileSync(configJournal), damaged);
});

asRoot('with room again everything is written, and the next start needs no console for it', async (t) => {
  const { configJournal } = edgePaths(node.stateDir);
  rmSync(join(disk, 'ballast'));
  await createSite('room.example');
  await serves('room.example');
  await eventually(() => !status().lastError.includes('not on disk'), { timeoutMs: 90_000, what: 'nothing waits' });
  const journal = readFileSync(configJournal);
  for (const host of ['kept.example', 'late.example', 'more3.example', 'room.example']) t.true(journal.includes(host));
  const asides = readdirSync(dirname(configJournal)).filter((name) =>
    name.startsWith(`${basename(configJournal)}.corrupt-`),
  );
  t.is(asides.length, 1);
  await node.supervisor.stop();
  const { app, channel, worker } = installation.consoles;
  await Promise.all([app, channel, worker].map(({ child }) => child.stop()));
  node.restart();
  for (const host of ['kept.example', 'late.example', 'more3.example', 'room.example']) await serves(host);
  await bans('192.0.2.66');
});
