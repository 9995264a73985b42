// The demo's life as its user sees it: first start, restarts after every kind of end, a second one beside it.
// Alone with: the ports that launchers pick
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { dirname, join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { type Demo, demoFolder, processesOf, removeDemo, spawnDemo, startDemo } from '../helpers/demo.ts';
import { eventually } from '../helpers/eventually.ts';
import { inLongForm } from '../helpers/long-form.ts';
import { existingRunFolders } from '../helpers/node-files.ts';

const folder = demoFolder('demo');
let demo: Demo;
let first: Demo['facts'];
let authority: string;

const addresses = ({ consoleUrl, nodeApiUrl, edge, origin }: Demo['facts']) => ({
  consoleUrl,
  nodeApiUrl,
  edge,
  origin,
});

/** The demo serves, and it is the installation it was before. */
async function assertSame(t: ExecutionContext): Promise<void> {
  const { accessKey, clusterId, nodeId, site, operator } = demo.facts;
  t.deepEqual(
    { accessKey, clusterId, nodeId, site, operator },
    {
      accessKey: first.accessKey,
      clusterId: first.clusterId,
      nodeId: first.nodeId,
      site: first.site,
      operator: first.operator,
    },
  );
  t.is(await demo.visit('203.0.113.1'), 200);
  t.is((await demo.visitHttps({ ca: authority })).status, 200);
  // The ban of the first test is older than every restart.
  await eventually(async () => (await demo.visit('198.51.100.66')) === 403);
  t.is((await demo.client.api<{ id: string }>('GET', `/sites/${first.site.id}`)).id, first.site.id);
}

function nodesOf(current: Demo) {
  return current.client.api<{ items: { id: string }[] }>('GET', '/nodes');
}

test.before('first start', async () => {
  await removeDemo(folder);
  demo = await startDemo(folder);
  first = demo.facts;
  authority = readFileSync(first.caFile, 'utf8');
});

test.after.always('stop', async () => {
  if (demo && processesOf(folder).length > 0) await demo.end('SIGINT');
  await eventually(() => processesOf(folder).length === 0, { timeoutMs: 60_000 });
  await removeDemo(folder);
});

test.serial(
  'the first start ends with a site that answers and a file for scripts only its owner can read',
  async (t) => {
    t.is(statSync(join(folder, 'demo.json')).mode & 0o777, 0o600);
    t.regex(first.accessKey, /^ewk_/);
    t.regex(first.edge.https, /^127\.0\.0\.1:\d+$/);
    t.is(await demo.visit('203.0.113.1'), 200);
    for (const pid of Object.values(first.pids)) t.true(existsSync(`/proc/${pid}`));
    t.true(demo.output().includes(first.clientIpHeader) && demo.output().includes('127.0.0.0/8'));
  },
);

test.serial('the site answers over HTTPS for whoever trusts the printed file, and says where HTTP/3 is', async (t) => {
  t.true(demo.output().includes(first.caFile) && demo.output().includes('--cacert'));
  t.is(statSync(join(folder, 'demo-ca.key')).mode & 0o777, 0o600);
  const { status, alpn, headers } = await demo.visitHttps();
  t.deepEqual({ status, alpn }, { status: 200, alpn: 'h2' });
  t.is(headers['alt-svc'], `h3=":${portOf(first.edge.https)}"; ma=86400`);
  await t.throwsAsync(demo.visitHttps({ ca: [] }), { code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' });
});

test.serial('a ban of a visitor is enforced, another visitor is not touched, lifting it restores', async (t) => {
  const body = { scope: 'platform', cidr: '198.51.100.7', reason: 'abuse', durationSeconds: 3600 };
  t.is(await demo.visit('198.51.100.7'), 200);
  const { id } = await demo.client.api<{ id: string }>('POST', '/bans', body);
  await eventually(async () => (await demo.visit('198.51.100.7')) === 403);
  t.is(await demo.visit('198.51.100.8'), 200);
  await demo.client.api('DELETE', `/bans/${id}`);
  await eventually(async () => (await demo.visit('198.51.100.7')) === 200);
  await demo.client.api('POST', '/bans', { ...body, cidr: '198.51.100.66' });
  await eventually(async () => (await demo.visit('198.51.100.66')) === 403);
});

test.serial('banning the loopback address is refused', async (t) => {
  const body = { scope: 'platform', cidr: '127.0.0.1', reason: 'abuse', durationSeconds: 3600 };
  const answer = await demo.client.request('POST', '/api/v1/bans', body, { 'x-api-key': first.accessKey });
  t.is(answer.status, 400);
});

test.serial('demo:env gives a shell the addresses and keys', (t) => {
  const script = `eval "$(npm run -s demo:env -- --data "$1")" && printf '%s|' "$CONSOLE" "$KEY" "$EDGE" "$EDGE_HTTPS" "$CA_FILE" "$SITE_HOST"`;
  const { stdout } = spawnSync('sh', ['-c', script, 'sh', folder], { encoding: 'utf8', timeout: 60_000 });
  t.is(
    stdout,
    [first.consoleUrl, first.accessKey, first.edge.http, first.edge.https, first.caFile, first.site.host, ''].join('|'),
  );
});

test.serial('a second start in the same folder is refused while the first runs, also with --fresh', async (t) => {
  for (const args of [[], ['--fresh']]) {
    const { child, output } = spawnDemo(folder, { args });
    await eventually(() => child.exitCode !== null, { timeoutMs: 60_000 });
    t.is(child.exitCode, 1);
    t.regex(output(), /already running as process \d+/);
  }
  t.is(await demo.visit('203.0.113.1'), 200);
});

test.serial('Ctrl-C ends everything; the next start needs neither network nor Go', async (t) => {
  await demo.end('SIGINT');
  await eventually(() => processesOf(folder).length === 0);
  t.false(existsSync(join(folder, 'demo.json')));
  // Only folders without Go; the pinned Node is not among them either.
  const PATH = `${dirname(systemNode())}:/usr/sbin:/usr/bin:/sbin:/bin`;
  demo = await startDemo(folder, { env: { PATH, GOPROXY: 'off' } });
  t.notRegex(demo.output(), /installing|building|enrolling|database schema: .*of/);
  t.deepEqual(addresses(demo.facts), addresses(first));
  await assertSame(t);
  await demo.end('SIGINT');
  const cut = spawnDemo(folder, { env: { PATH }, networkCut: true });
  await eventually(() => cut.output().includes('The demo runs.'), { timeoutMs: 120_000 }).catch((error: unknown) => {
    throw new Error(`${String(error)}\n${cut.output()}`);
  });
  t.notRegex(cut.output(), /installing|building|enrolling|moving to|not served/);
  process.kill(-cut.child.pid!, 'SIGINT');
  await eventually(() => processesOf(folder).length === 0, { timeoutMs: 60_000 });
  demo = await startDemo(folder);
  await assertSame(t);
});

inLongForm(() => {
  test.serial('a closed terminal (SIGHUP) ends everything; the next start goes on', async (t) => {
    // npm ends at once on this signal; the launcher still stops what it started, and the next start waits for it.
    await demo.end('SIGHUP');
    demo = await startDemo(folder);
    t.deepEqual(addresses(demo.facts), addresses(first));
    await assertSame(t);
  });
});

test.serial(
  'with --acme an authority issues the certificate, renews it at the next start, and goes without it',
  async (t) => {
    const settings = () =>
      demo.client.api<{ settings: { certificateId: string } }>('GET', `/sites/${first.site.id}/https`);
    const own = (await settings()).settings.certificateId;
    const shown: { id: string; fingerprint: string; root: string }[] = [];
    for (let start = 0; start < 2; start++) {
      await demo.end('SIGINT');
      demo = await startDemo(folder, { args: ['--acme'] });
      t.is(demo.facts.caFile, join(folder, 'acme-ca.pem'));
      // Whoever trusts the printed file, and nobody who trusts the demo's own authority.
      t.is((await demo.visitHttps()).status, 200);
      await t.throwsAsync(demo.visitHttps({ ca: authority }), { message: /certificate/ });
      const { certificateId } = (await settings()).settings;
      const certificate = await demo.client.api<{ id: string; source: string; fingerprint: string }>(
        'GET',
        `/certificates/${certificateId}`,
      );
      t.is(certificate.source, 'acme');
      shown.push({ ...certificate, root: readFileSync(demo.facts.caFile, 'utf8') });
    }
    const [before, after] = shown;
    t.is(after!.id, before!.id);
    t.not(after!.fingerprint, before!.fingerprint);
    t.not(after!.root, before!.root);
    await demo.end('SIGINT');
    demo = await startDemo(folder);
    t.is(demo.facts.caFile, first.caFile);
    t.is((await settings()).settings.certificateId, own);
    await assertSame(t);
  },
);

test.serial('after kill -9 of the launcher the next start stops what was left and goes on', async (t) => {
  const { pid } = JSON.parse(readFileSync(join(folder, 'launcher.lock'), 'utf8')) as { pid: number };
  await demo.end('SIGKILL');
  t.false(
    processesOf(folder).some((command) => command.includes('bin/demo.ts')),
    `launcher ${pid} is gone`,
  );
  t.true(existsSync(`/proc/${demo.facts.pids.console}`), 'the console outlived the launcher');
  demo = await startDemo(folder);
  t.regex(demo.output(), /stopped processes of an earlier start/);
  t.deepEqual(addresses(demo.facts), addresses(first));
  await assertSame(t);
  t.is((await nodesOf(demo)).items.length, 1);
});

inLongForm(() => {
  test.serial(
    'after kill -9 of the launcher and the supervisor of the edge the next start has the same addresses',
    async (t) => {
      const [runDir] = existingRunFolders(join(folder, 'edge'));
      const { supervisor } = JSON.parse(readFileSync(join(runDir!, 'supervisor.lock'), 'utf8')) as {
        supervisor: { pid: number };
      };
      process.kill(supervisor.pid, 'SIGKILL');
      await demo.end('SIGKILL');
      demo = await startDemo(folder);
      t.deepEqual(addresses(demo.facts), addresses(first));
      await assertSame(t);
    },
  );
});

inLongForm(() => {
  test.serial('when npm alone is killed the demo ends and the next start works', async (t) => {
    process.kill(demo.launcher.pid!, 'SIGKILL');
    await eventually(() => processesOf(folder).length === 0, { timeoutMs: 60_000 });
    t.false(existsSync(join(folder, 'demo.json')));
    demo = await startDemo(folder);
    await assertSame(t);
  });
});

test.serial('a console that dies is started again and demo.json follows', async (t) => {
  const before = demo.facts.pids.console;
  process.kill(before, 'SIGKILL');
  const after = await eventually(() => {
    const facts = JSON.parse(readFileSync(join(folder, 'demo.json'), 'utf8')) as Demo['facts'];
    return facts.pids.console !== before && facts.pids.console;
  });
  t.true(existsSync(`/proc/${after}`));
  t.is(await demo.visit('203.0.113.1'), 200, 'the edge serves meanwhile');
  await eventually(async () => (await demo.client.request('GET', '/healthz')).status === 200);
});

test.serial('a second demo runs beside the first', async (t) => {
  const other = demoFolder('second');
  const second = await startDemo(other);
  try {
    t.is(
      new Set([...Object.values(addresses(second.facts)), ...Object.values(addresses(demo.facts))].map(String)).size >
        1,
      true,
    );
    for (const key of ['consoleUrl', 'nodeApiUrl', 'origin'] as const) t.not(second.facts[key], demo.facts[key]);
    t.not(second.facts.edge.http, demo.facts.edge.http);
    await second.client.api('POST', '/bans', {
      scope: 'platform',
      cidr: '203.0.113.50',
      reason: 'abuse',
      durationSeconds: 600,
    });
    await eventually(async () => (await second.visit('203.0.113.50')) === 403);
    t.is(await demo.visit('203.0.113.50'), 200, 'a ban of one is none of the other');
  } finally {
    await second.end('SIGINT');
    await removeDemo(other);
  }
  t.is(await demo.visit('203.0.113.1'), 200);
});

test.serial('ports taken meanwhile on either address family are given up, told, and everything follows', async (t) => {
  await demo.end('SIGINT');
  await eventually(() => processesOf(folder).length === 0);
  const holders = [
    await hold('::1', portOf(demo.facts.edge.http)),
    await hold('127.0.0.1', portOf(demo.facts.consoleUrl)),
    await hold('::', portOf(demo.facts.nodeApiUrl)),
    await hold('0.0.0.0', portOf(demo.facts.origin)),
  ];
  try {
    const before = demo.facts;
    demo = await startDemo(folder);
    for (const key of ['consoleUrl', 'nodeApiUrl', 'origin'] as const) t.not(demo.facts[key], before[key]);
    t.not(demo.facts.edge.http, before.edge.http);
    t.is(demo.output().match(/is in use, moving to/g)?.length, 4);
    await eventually(async () => (await demo.visit('203.0.113.1')) === 200);
    await eventually(async () => (await demo.visit('198.51.100.66')) === 403);
    t.is(demo.facts.site.id, first.site.id);
    t.is((await nodesOf(demo)).items.length, 1, 'the node that knew the old address is gone');
  } finally {
    for (const server of holders) server.close();
  }
});

test.serial('--fresh deletes only a folder of ours', async (t) => {
  const foreign = demoFolder('foreign');
  mkdirSync(foreign, { recursive: true });
  t.teardown(() => rmSync(foreign, { recursive: true }));
  writeFileSync(join(foreign, 'thesis.txt'), 'years of work');
  for (const args of [['--fresh'], []]) {
    const { child, output } = spawnDemo(foreign, { args });
    await eventually(() => child.exitCode !== null, { timeoutMs: 60_000 });
    t.is(child.exitCode, 1);
    t.regex(output(), /contains other files/);
    t.is(readFileSync(join(foreign, 'thesis.txt'), 'utf8'), 'years of work');
  }
});

function portOf(address: string): number {
  return Number(/:(\d+)$/.exec(address)?.[1]);
}

async function hold(host: string, port: number): Promise<Server> {
  const server = createServer();
  await new Promise<void>((done, fail) => {
    server.once('error', fail);
    server.listen({ host, port, ipv6Only: host.includes(':') }, done);
  });
  return server;
}

/** The node a newcomer has: the first one on PATH outside of the packages. */
function systemNode(): string {
  const folders = (process.env.PATH ?? '').split(':').filter((name) => !name.includes('node_modules'));
  return folders.map((name) => join(name, 'node')).find((file) => existsSync(file)) ?? process.execPath;
}
