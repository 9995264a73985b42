// From a console to a node with one line: the package is made, the console serves it beside the installer, and the line it
// prints turns a machine into a node that serves a site. The machine is a folder on this one.
import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { freePort } from '../../bench/lib/servers.ts';
import { startTestConsoleProcess, type TestConsoleProcess } from '../helpers/console.ts';
import { edgeGet } from '../helpers/edge-request.ts';
import { eventually } from '../helpers/eventually.ts';
import { Machine, packageNode, shell } from '../helpers/installer.ts';

interface Token {
  token: string;
  installCommand: string;
  serverUrl: string;
  caSha256: string;
  warnings: string[];
}

const undo: (() => Promise<unknown> | unknown)[] = [];
const origin = createServer((_request, response) => response.end('origin'));
let downloads: string;
let console_: TestConsoleProcess;
let clusterId: string;
let edge: { host: string; port: number };
let machine: Machine;
/** The installer without what only a new node needs. */
let again: string;
let sum: string;

test.before('a package, and a console that offers it', async () => {
  downloads = mkdtempSync(join(tmpdir(), 'downloads-'));
  undo.push(() => rmSync(downloads, { recursive: true, force: true }));
  sum = await packageNode(downloads, '1.0.0');
  const [port, nodePort] = [await freePort(), await freePort()];
  console_ = await startTestConsoleProcess({
    env: {
      PORT: String(port),
      SVC_PUBLIC_URL: `http://127.0.0.1:${port}`,
      NODE_API_PORT: String(nodePort),
      SVC_NODE_API_URL: `https://localhost:${nodePort}`,
      SVC_DOWNLOADS_DIR: downloads,
    },
  });
  undo.push(() => console_.stop());
  again = `curl -fsSL ${console_.url}/install.sh | sh -s --`;
  const { client } = console_;
  clusterId = (await client.api<{ items: { id: string }[] }>('GET', '/clusters')).items[0]!.id;
  await client.api('PUT', '/settings/origin-allow-list', { cidrs: ['127.0.0.0/8'] });
  await new Promise<void>((resolve) => origin.listen(0, '127.0.0.1', resolve));
  undo.push(() => origin.close());
  edge = { host: '127.0.0.1', port: await freePort() };
  machine = new Machine(`127.0.0.1:${edge.port}`);
  undo.push(() => machine.remove(again));
});

test.afterEach.always('show what the node said', (t) => {
  if (!t.passed) t.log(machine?.log().slice(-4000));
});

test.after.always('stop everything', async () => {
  for (const each of undo.reverse()) await each();
});

const newToken = () => console_.client.api<Token>('POST', '/enrollment-tokens', { clusterId });
const archiveOf = (version: string) => {
  const arch = process.arch === 'x64' ? 'amd64' : process.arch;
  return join(downloads, 'svc-edge', `v${version}`, `svc-edge_${version}_linux_${arch}.tar.gz`);
};
/** A version made of 1.0.0 and a change to its files. */
async function repack(version: string, change: string): Promise<void> {
  const work = mkdtempSync(join(tmpdir(), 'repack-'));
  const folder = join(downloads, 'svc-edge', `v${version}`);
  const made = await shell(
    `set -e; mkdir ${folder}; tar -xzf ${archiveOf('1.0.0')} -C ${work}; cd ${work}/svc-edge; ${change}; cd ..
     tar -cf - svc-edge | gzip -1 > ${archiveOf(version)}
     cd ${folder}; sha256sum *.gz > checksums.txt; echo v${version} > ../latest; rm -r ${work}`,
  );
  if (made.code !== 0) throw new Error(made.output);
}
interface Node {
  online: boolean;
  dataPlaneHealthy: boolean;
  agentVersion: string;
}
/** The node as the console sees it, once it is as wanted. */
const nodeWhen = (id: string, wanted: (node: Node) => boolean) =>
  eventually(
    async () => {
      const node = await console_.client.api<Node>('GET', `/nodes/${id}`);
      return wanted(node) && node;
    },
    { timeoutMs: 60_000, what: 'the node as wanted' },
  );
const current = () => readFileSync(machine.path('opt/svc-edge/current/package.json'), 'utf8');
/** Programs of the machine that run. */
const processes = async () => (await shell(`ls -l /proc/[0-9]*/exe 2>/dev/null | grep ${machine.folder}`)).output;

test.serial(
  'the same sources give the same archive, and another content takes its place only when asked',
  async (t) => {
    const original = readFileSync(archiveOf('1.0.0'));
    appendFileSync(archiveOf('1.0.0'), 'x');
    await t.throwsAsync(packageNode(downloads, '1.0.0'), { message: /other content/ });
    t.is(await packageNode(downloads, '1.0.0', '--replace'), sum);
    t.true(readFileSync(archiveOf('1.0.0')).equals(original));
  },
);

test.serial('a wrong checksum refuses and leaves nothing behind', async (t) => {
  const { installCommand, token } = await newToken();
  const original = readFileSync(archiveOf('1.0.0'));
  const damaged = Buffer.from(original);
  damaged[original.length - 100]! ^= 1;
  writeFileSync(archiveOf('1.0.0'), damaged);
  try {
    const { code, output } = await machine.run(installCommand);
    t.is(code, 1, output);
    t.regex(output, /the SHA-256 of .* is wrong, nothing was installed/);
    t.true(output.includes(`expected ${createHash('sha256').update(original).digest('hex')}`));
    t.false(output.includes(token));
    t.deepEqual(machine.content(), []);
  } finally {
    writeFileSync(archiveOf('1.0.0'), original);
  }
});

test.serial('a server without the pinned authority gets no token, and nothing stays', async (t) => {
  const { installCommand, caSha256, token } = await newToken();
  const { code, output } = await machine.run(installCommand.replace(caSha256, 'ab'.repeat(32)));
  t.is(code, 1, output);
  t.regex(output, /could not join the cluster/);
  t.false(output.includes(token));
  t.deepEqual(machine.content(), []);
});

test.serial('the line that the console prints makes a node that serves', async (t) => {
  const { installCommand, token, warnings } = await newToken();
  t.false(warnings.includes('node_package_missing'));
  t.true(installCommand.startsWith(`curl -fsSL ${console_.url}/install.sh | SVC_TOKEN=${token} sh -s -- `));
  const { code, output } = await machine.run(installCommand);
  t.is(code, 0, output);
  t.false(output.includes(token));
  const id = machine.identity().node_id!;
  const node = await nodeWhen(id, ({ online, dataPlaneHealthy }) => online && dataPlaneHealthy);
  t.is(node.agentVersion, '1.0.0');
  const { address, port } = origin.address() as AddressInfo;
  await console_.client.api('POST', '/sites', { domains: ['www.example.com'], origins: [{ address, port }] });
  await eventually(async () => (await edgeGet(edge, 'www.example.com', {})).status === 200, { what: 'the site' });
  const status = await machine.node('status');
  t.is(status.code, 0, status.output);
  for (const file of ['LICENSE', 'NOTICE', 'licences.txt'])
    t.true(existsSync(machine.path('opt/svc-edge/current', file)), file);
});

test.serial('a second run changes nothing: identity, process and configuration stay', async (t) => {
  const before = { identity: machine.identity(), pid: machine.pid(), content: machine.content() };
  const token = await newToken();
  for (const line of [again, token.installCommand]) {
    const { code, output } = await machine.run(line);
    t.is(code, 0, output);
    t.deepEqual(machine.identity(), before.identity);
    t.is(machine.pid(), before.pid);
    t.deepEqual(machine.content(), before.content);
  }
  t.like(await console_.client.api('GET', `/enrollment-tokens/${(token as unknown as { tokenId: string }).tokenId}`), {
    usedAt: null,
  });
});

test.serial('two installations at a time do not mix', async (t) => {
  const held = machine.path('opt/svc-edge');
  const { code, output } = await shell(`flock ${held} sh -c '${again} ${machine.options}'`);
  t.is(code, 1, output);
  t.regex(output, /another installation is going on/);
  t.is((await machine.node('status')).code, 0);
});

test.serial('a node of one console does not join another by mistake', async (t) => {
  const { installCommand, caSha256 } = await newToken();
  const { code, output } = await machine.run(installCommand.replace(caSha256, 'ab'.repeat(32)));
  t.is(code, 1, output);
  t.regex(output, /is a node of another console.*\n.*--force/);
});

test.serial('it joins anew when asked, and stays what it was when that fails', async (t) => {
  const before = machine.identity();
  const { installCommand } = await newToken();
  const joined = await machine.run(installCommand, '--force');
  t.is(joined.code, 0, joined.output);
  const { node_id: id } = machine.identity();
  t.not(id, before.node_id);
  await nodeWhen(id!, ({ online }) => online);
  const used = await machine.run(installCommand, '--force');
  t.is(used.code, 1, used.output);
  t.regex(used.output, /the enrollment token was already used/);
  t.is(machine.identity().node_id, id);
  await eventually(async () => (await machine.node('status')).code === 0, { what: 'the node to run as before' });
});

test.serial('it is upgraded in place, and goes back when the new version does not become healthy', async (t) => {
  const { node_id: id } = machine.identity();
  await repack('1.0.1', 'sed -i s/1.0.0/1.0.1/ package.json');
  const upgraded = await machine.run(again);
  t.is(upgraded.code, 0, upgraded.output);
  t.is(machine.identity().node_id, id);
  await nodeWhen(id!, ({ agentVersion }) => agentVersion === '1.0.1');

  await repack('1.0.2', `printf '#!/bin/sh\\n[ "$1" = version ]\\n' > bin/svc-edge`);
  const failed = await machine.run(again);
  t.is(failed.code, 1, failed.output);
  t.regex(failed.output, /version 1\.0\.2 was not installed, the previous version runs again/);
  t.regex(current(), /"version": "1\.0\.1"/);
  t.is((await machine.node('status')).code, 0);
  t.is((await edgeGet(edge, 'www.example.com', {})).status, 200);

  const back = await machine.run(again, '--version 1.0.0');
  t.is(back.code, 0, back.output);
  t.regex(current(), /"version": "1\.0\.0"/);
});

for (const [words, said] of [
  ['--server http://console.example', '--server'],
  ["--server 'https://a;id'", '--server'],
  ["--server 'https://$(id)'", '--server'],
  ['--ca-sha256 abc', '--ca-sha256'],
  ["--http-listen ':80;id'", '--http-listen'],
  [`--http-listen "$(printf ':80\\n;id')"`, '--http-listen'],
  ['--kernel-bans perhaps', '--kernel-bans'],
  ['--version 1', '--version'],
  ['--root relative', '--root'],
  ["--root '/tmp/a b'", '--root'],
  ['--server=https://a', '--server'],
  ['--server', '--server'],
  ['--purge', '--purge'],
  ['--unknown', '--unknown'],
  ['more', 'more'],
] as const)
  test.serial(`${words} is a mistake of the command line`, async (t) => {
    const { code, output } = await shell(`${again} ${words}`);
    t.is(code, 2, output);
    t.true(output.includes(said));
    t.regex(output, /--help/);
  });

test.serial('whoever asks gets help, and what is missing is said with the next step', async (t) => {
  const help = await shell(`${again} --help`);
  t.is(help.code, 0);
  t.true(help.output.includes(`curl -fsSL ${console_.url}/install.sh | `));
  const other = new Machine('127.0.0.1:1');
  undo.push(() => rmSync(other.folder, { recursive: true, force: true }));
  const { installCommand, serverUrl } = await newToken();
  const refusals: [string, RegExp][] = [
    [
      `${again} ${other.options}`,
      /joining a cluster needs SVC_TOKEN, --server and --ca-sha256\n.*Copy the command from the console/,
    ],
    [`${installCommand} ${other.options} --version 9.9.9`, /no version 9\.9\.9/],
    [
      `${installCommand} ${other.options} --http-listen :${edge.port}`,
      new RegExp(`port ${edge.port} is in use\n.*ss -ltnp`),
    ],
    [
      `${installCommand.replace(serverUrl, 'https://127.0.0.1:1')} ${other.options}`,
      /https:\/\/127\.0\.0\.1:1 cannot be reached/,
    ],
    [`${installCommand.replace(serverUrl, 'https://nowhere.invalid')} ${other.options}`, /cannot be resolved/],
  ];
  for (const [line, said] of refusals) {
    const { code, output } = await shell(line);
    t.is(code, 1, output);
    t.regex(output, said);
    t.deepEqual(other.content(), [], line);
  }
});

test.serial('it is removed with everything it started', async (t) => {
  const pid = machine.pid()!;
  const kept = await shell(`${again} --uninstall ${machine.options}`);
  t.is(kept.code, 0, kept.output);
  await eventually(async () => !existsSync(`/proc/${pid}`) && (await processes()) === '', { what: 'the end of all' });
  t.true(existsSync(machine.path('var/lib/svc-edge/identity.json')));
  t.false(existsSync(machine.path('opt/svc-edge')));
  const purged = await shell(`${again} --uninstall --purge ${machine.options}`);
  t.is(purged.code, 0, purged.output);
  t.deepEqual(
    machine.content().filter((name) => name.includes('svc-edge')),
    [],
  );
});
