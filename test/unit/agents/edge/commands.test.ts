// The commands as processes: exit codes, messages, secrets, and the life of a supervisor. A shell script stands for the
// edge server, so that these tests need no Go build.

import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { existingRunFolders, openRunFolder, removeRunFolder } from '../../../../agents/edge/run-folder.ts';
import type { SupervisorRecord } from '../../../../agents/edge/supervise/supervisor-file.ts';
import { isAlive, type ProcessMark, startTimeOf } from '../../../../agents/kit/process-info.ts';
import { TestAuthority } from '../helpers/authority.ts';
import { TestConsole } from '../helpers/console.ts';
import { temporaryFolder, until } from '../helpers/folder.ts';

const MAIN = join(import.meta.dirname, '../../../../agents/edge/main.ts');

interface Run {
  child: ChildProcess;
  /** Everything it printed so far. */
  output(): string;
  ended: Promise<number | null>;
}

function start(
  t: ExecutionContext,
  args: string[],
  options: { input?: string; env?: Record<string, string> } = {},
): Run {
  const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('SVC_')));
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { ...environment, ...options.env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  child.stdin.on('error', () => undefined);
  child.stdin.end(options.input ?? '');
  return { child, output: () => output, ended: new Promise((resolve) => child.once('close', resolve)) };
}

async function run(
  t: ExecutionContext,
  args: string[],
  options: { input?: string; env?: Record<string, string> } = {},
) {
  const running = start(t, args, options);
  return { code: await running.ended, output: running.output() };
}

async function console_(t: ExecutionContext): Promise<TestConsole> {
  const testConsole = await TestConsole.start({ authority: await TestAuthority.create() });
  t.teardown(() => testConsole.stop());
  return testConsole;
}

function enrollArguments(testConsole: TestConsole, stateDir: string): string[] {
  return ['enroll', '--state-dir', stateDir, '--server', testConsole.url, '--ca-sha256', testConsole.authority.pin];
}

test.serial('every command has a help that ends with 0', async (t) => {
  for (const command of ['enroll', 'run', 'supervise', 'status', 'version']) {
    const { code, output } = await run(t, [command, '--help']);
    t.is(code, 0, command);
    t.true(output.includes(`Command ${command}:`), output);
  }
  t.is((await run(t, ['--help'])).code, 0);
});

for (const [title, args] of [
  ['does not exist', []],
  ['an unknown command', ['serve']],
  ['a name of every object', ['constructor']],
  ['an unknown option', ['run', '--stat-dir', 'x']],
  [
    'a server without https',
    ['enroll', '--server', 'http://x:1', '--ca-sha256', 'ab'.repeat(32), '--token', 'ewt_abcdefgh'],
  ],
  [
    'a server with a path',
    ['enroll', '--server', 'https://x:1/y', '--ca-sha256', 'ab'.repeat(32), '--token', 'ewt_abcdefgh'],
  ],
  ['a short fingerprint', ['enroll', '--server', 'https://x:1', '--ca-sha256', 'ab', '--token', 'ewt_abcdefgh']],
  ['no fingerprint', ['enroll', '--server', 'https://x:1', '--token', 'ewt_abcdefgh']],
  ['no token', ['enroll', '--server', 'https://x:1', '--ca-sha256', 'ab'.repeat(32)]],
  [
    'a token of another kind',
    ['enroll', '--server', 'https://x:1', '--ca-sha256', 'ab'.repeat(32), '--token', 'ewp_abcdefgh'],
  ],
  ['a listen address without a port', ['supervise', '--http-listen', 'localhost']],
  ['an address for HTTPS without a port', ['supervise', '--https-listen', 'localhost']],
  ['a port above 65535', ['supervise', '--http-listen', ':65536']],
  ['a table name with a script', ['run', '--nft-table', 'svc; flush ruleset']],
  ['a table name without svc', ['run', '--nft-table', 'filter']],
  ['a peer that is no address', ['run', '--proxy-peers', '10.0.0.0/33']],
  ['peers wider than the IPv4-mapped range', ['run', '--proxy-peers', '::ffff:10.0.0.0/95']],
  ['a folder too deep for a socket', ['run', '--run-dir', `/tmp/${'x'.repeat(100)}`]],
] as [string, string[]][]) {
  test.serial(`exit code 2 and nothing done: ${title}`, async (t) => {
    const folder = join(temporaryFolder(t), 'state');
    const { code, output } = await run(t, args, { env: { SVC_STATE_DIR: folder } });
    t.is(code, 2, output);
    t.true(output.length > 0);
    t.false(existsSync(folder));
  });
}

test.serial('enroll takes the token from standard input or the environment and writes a private folder', async (t) => {
  const testConsole = await console_(t);
  for (const source of [{ input: 'ewt_goodtoken1\n' }, { env: { SVC_TOKEN: 'ewt_goodtoken1' } }]) {
    const stateDir = join(temporaryFolder(t), 'state');
    const { code, output } = await run(
      t,
      [...enrollArguments(testConsole, stateDir), '--node-name', 'edge seven'],
      source,
    );
    t.is(code, 0, output);
    t.false(output.includes('goodtoken'), output);
    t.is(statSync(stateDir).mode & 0o777, 0o700);
    t.is(JSON.parse(readFileSync(join(stateDir, 'identity.json'), 'utf8')).node_id, 'node-1');
  }
});

test.serial('enroll twice is refused, with --force it replaces the identity', async (t) => {
  const testConsole = await console_(t);
  const stateDir = join(temporaryFolder(t), 'state');
  const again = (extra: string[] = []) =>
    run(t, [...enrollArguments(testConsole, stateDir), ...extra], { input: 'ewt_goodtoken1' });
  t.is((await again()).code, 0);
  const before = readFileSync(join(stateDir, 'node.crt'), 'utf8');
  t.is((await again()).code, 1);
  t.is(testConsole.tokens.length, 1);
  t.is(readFileSync(join(stateDir, 'node.crt'), 'utf8'), before);
  t.is((await again(['--force'])).code, 0);
  t.not(readFileSync(join(stateDir, 'node.crt'), 'utf8'), before);
});

test.serial('a refused token and a wrong fingerprint end with 1, tell why and leave no identity', async (t) => {
  const testConsole = await console_(t);
  const stateDir = join(temporaryFolder(t), 'state');
  const refused = await run(t, enrollArguments(testConsole, stateDir), { input: 'ewt_usedtoken1' });
  t.is(refused.code, 1);
  t.true(refused.output.includes('the token is not valid'));
  const args = enrollArguments(testConsole, stateDir);
  args[args.length - 1] = 'ab'.repeat(32);
  const wrong = await run(t, args, { input: 'ewt_goodtoken1' });
  t.is(wrong.code, 1);
  t.true(wrong.output.includes('fingerprint'));
  t.false(existsSync(join(stateDir, 'identity.json')));
  t.deepEqual(testConsole.tokens, ['ewt_usedtoken1']);
});

test.serial('status without an agent ends with 1', async (t) => {
  t.is((await run(t, ['status', '--state-dir', temporaryFolder(t)])).code, 1);
});

/** A stand-in for the edge server that notes its environment, arguments and configuration. */
function fakeServer(folder: string): string {
  const path = join(folder, 'server.sh');
  writeFileSync(
    path,
    `#!/bin/sh\nenv > "${folder}/server.env"\necho "$@" > "${folder}/server.args"\ncat >> "${folder}/server.configs"\necho x >> "${folder}/server.starts"\nexec sleep 600\n`,
  );
  chmodSync(path, 0o755);
  return path;
}

interface Supervisor extends Run {
  stateDir: string;
  folder: string;
  children(): ProcessMark[];
}

/** A file beside the socket, read as JSON. */
function runFile(stateDir: string, name: string): unknown {
  const paths = existsSync(stateDir) ? existingRunFolders(stateDir).map((folder) => join(folder, name)) : [];
  const path = paths.find((path) => existsSync(path));
  return path === undefined ? undefined : JSON.parse(readFileSync(path, 'utf8'));
}

let port = 20_000 + (process.pid % 10_000);

async function supervise(
  t: ExecutionContext,
  folder = temporaryFolder(t),
  listen = `127.0.0.1:${port++}`,
  env: Record<string, string> = {},
  more: readonly string[] = [],
): Promise<Supervisor> {
  const stateDir = join(folder, 'state');
  const args = [
    'supervise',
    '--state-dir',
    stateDir,
    '--caddy-bin',
    fakeServer(folder),
    '--http-listen',
    listen,
    '--https-listen',
    'none',
    '--kernel-bans',
    'off',
    '--hold-socket',
    'none',
    ...more,
  ];
  const running = start(t, args, { env });
  const children = (): ProcessMark[] =>
    (runFile(stateDir, 'supervisor.lock') as SupervisorRecord | undefined)?.children ?? [];
  await until(t, 'children', () => children().length === 2 && existsSync(join(folder, 'server.starts')));
  t.teardown(() => {
    for (const mark of children()) if (isAlive(mark)) process.kill(mark.pid, 'SIGKILL');
    // Those that were killed left theirs.
    if (existsSync(stateDir)) for (const run of existingRunFolders(stateDir)) removeRunFolder(stateDir, run);
  });
  return { ...running, stateDir, folder, children };
}

test.serial('a node that joins another cluster serves nothing of the former one', async (t) => {
  const testConsole = await console_(t);
  const stateDir = join(temporaryFolder(t), 'state');
  mkdirSync(join(stateDir, 'edge'), { recursive: true, mode: 0o700 });
  // Nobody can tell which cluster an identity that cannot be read was of.
  writeFileSync(join(stateDir, 'identity.json'), '{');
  const names = ['config.journal', 'bans.journal', 'security.journal', 'challenge-keys.json'];
  names.push('config.journal.before', 'bans.journal.before');
  // One of them where an older version left it.
  for (const name of names) writeFileSync(join(stateDir, name === 'bans.journal' ? '' : 'edge', name), 'former');
  const { code, output } = await run(t, [...enrollArguments(testConsole, stateDir), '--force'], {
    input: 'ewt_goodtoken1',
  });
  t.is(code, 0, output);
  t.deepEqual(
    names.filter((name) => existsSync(join(stateDir, name)) || existsSync(join(stateDir, 'edge', name))),
    [],
  );
});

/** What each start of the server read from its standard input. */
function configurations({ folder }: Supervisor) {
  const lines = readFileSync(join(folder, 'server.configs'), 'utf8').trimEnd().split('\n');
  return lines.map(
    (line) =>
      JSON.parse(line) as { apps: { svc: { socket: string; state_dir: string } }; admin: { disabled: boolean } },
  );
}

/** Variables of a process. While it changes into another program, as the server does at its end, the kernel shows none. */
async function environmentOf(t: ExecutionContext, { pid }: ProcessMark): Promise<string[]> {
  let variables = '';
  await until(t, 'variables', () => {
    variables = readFileSync(`/proc/${pid}/environ`, 'utf8');
    return variables !== '';
  });
  return variables.split('\0');
}

async function confinementOf(t: ExecutionContext, mark: ProcessMark): Promise<string> {
  const name = 'SVC_CONFINE=';
  return (await environmentOf(t, mark)).find((each) => each.startsWith(name))!.slice(name.length);
}

test.serial('supervise starts both, gives them no token, and stops both on SIGTERM', async (t) => {
  const supervisor = await supervise(t, undefined, undefined, { SVC_TOKEN: 'ewt_secretsecret' });
  const [server, agent] = supervisor.children();
  for (const mark of [server!, agent!])
    t.false((await environmentOf(t, mark)).some((each) => each.includes('ewt_secretsecret')));
  const [runDir] = existingRunFolders(supervisor.stateDir);
  const folders = await confinementOf(t, server!);
  t.deepEqual(JSON.parse(folders), {
    read: [`${supervisor.stateDir}/edge`],
    write: [
      runDir,
      `${supervisor.stateDir}/edge/counts`,
      `${supervisor.stateDir}/edge/logs`,
      `${supervisor.stateDir}/edge/spool`,
      `${supervisor.stateDir}/edge/cache`,
    ],
  });
  t.is(readFileSync(join(supervisor.folder, 'server.args'), 'utf8').trim(), 'run --config -');
  const [config] = configurations(supervisor);
  t.is(config!.apps.svc.socket, `${runDir}/edge.sock`);
  t.is(config!.apps.svc.state_dir, `${supervisor.stateDir}/edge`);
  t.is(config!.admin.disabled, true);
  t.is(statSync(runDir!).mode & 0o777, 0o700);
  supervisor.child.kill('SIGTERM');
  t.is(await supervisor.ended, 0, supervisor.output());
  t.false(isAlive(server!));
  t.false(isAlive(agent!));
  t.false(supervisor.output().includes('did not stop in time'), supervisor.output());
  t.deepEqual(existingRunFolders(supervisor.stateDir), []);
});

test.serial('GeoIP databases are named to the server, which may read the folders that are there', async (t) => {
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, 'geoip'));
  const [country, asn] = [join(folder, 'geoip', 'country.mmdb'), join(folder, 'missing', 'asn.mmdb')];
  const supervisor = await supervise(t, folder, undefined, { SVC_GEOIP_COUNTRY: country }, ['--geoip-asn', asn]);
  const folders = await confinementOf(t, supervisor.children()[0]!);
  t.deepEqual((JSON.parse(folders) as { read: string[] }).read, [`${supervisor.stateDir}/edge`, join(folder, 'geoip')]);
  t.like(configurations(supervisor)[0]!.apps.svc, { geoip_country: country, geoip_asn: asn });
  supervisor.child.kill('SIGTERM');
  t.is(await supervisor.ended, 0);
});

test.serial('metrics are served where and of which sites somebody says, else on the socket alone', async (t) => {
  const args = ['--metrics-listen', '127.0.0.1:9465', '--metrics-site', 'a', '--metrics-site', 'b'];
  const supervisor = await supervise(t, temporaryFolder(t), undefined, {}, args);
  t.like(configurations(supervisor)[0]!.apps.svc, { metrics_listen: '127.0.0.1:9465', metrics_sites: 'a,b' });
  supervisor.child.kill('SIGTERM');
  t.is(await supervisor.ended, 0);
  const silent = await supervise(t);
  const { svc } = configurations(silent)[0]!.apps;
  t.false('metrics_listen' in svc || 'metrics_sites' in svc);
  silent.child.kill('SIGTERM');
  t.is(await silent.ended, 0);
  const wrong = ['supervise', '--state-dir', join(temporaryFolder(t), 'state'), '--metrics-site', 'a b'];
  t.is((await run(t, wrong)).code, 2);
});

test.serial('GeoIP databases beside the key of the node are refused', async (t) => {
  const folder = temporaryFolder(t);
  for (const path of ['asn.mmdb', join('state', 'asn.mmdb'), join('state', 'edge', 'asn.mmdb')]) {
    const args = ['supervise', '--state-dir', join(folder, 'state'), '--caddy-bin', fakeServer(folder)];
    const { code, output } = await run(t, [...args, '--geoip-asn', join(folder, path)]);
    t.is(code, 1, path);
    t.regex(output, /need their own folder/, path);
  }
});

test.serial('a killed child is started again', async (t) => {
  const supervisor = await supervise(t);
  const [server, agent] = supervisor.children();
  process.kill(server!.pid, 'SIGKILL');
  process.kill(agent!.pid, 'SIGKILL');
  await until(t, 'both new', () => {
    const now = supervisor.children();
    return now.length === 2 && now.every(({ pid }) => pid !== server!.pid && pid !== agent!.pid);
  });
  await until(t, 'the configuration once more', () => configurations(supervisor).length === 2);
  t.deepEqual(...(configurations(supervisor) as [unknown, unknown]));
  supervisor.child.kill('SIGINT');
  t.is(await supervisor.ended, 0);
});

test.serial(
  'a killed supervisor: its agent ends, its server keeps serving until the next start replaces it',
  async (t) => {
    const first = await supervise(t);
    const [server, agent] = first.children();
    first.child.kill('SIGKILL');
    await until(t, 'agent gone', () => !isAlive(agent!));
    t.true(isAlive(server!));
    const second = await supervise(t, first.folder);
    await until(
      t,
      'replaced',
      () => second.children().length === 2 && second.children().every(({ pid }) => pid !== server!.pid),
    );
    t.false(isAlive(server!));
    second.child.kill('SIGTERM');
    t.is(await second.ended, 0);
  },
);

test.serial('a folder and an address belong to one supervisor', async (t) => {
  const listen = `127.0.0.1:${port++}`;
  const supervisor = await supervise(t, undefined, listen);
  const folder = temporaryFolder(t);
  const other = ['--https-listen', 'none', '--caddy-bin', fakeServer(folder), '--kernel-bans', 'off'];
  other.push('--hold-socket', 'none');
  const sameFolder = await run(t, [
    'supervise',
    '--state-dir',
    supervisor.stateDir,
    '--http-listen',
    `127.0.0.1:${port++}`,
    ...other,
  ]);
  const sameAddress = await run(t, [
    'supervise',
    '--state-dir',
    join(folder, 'state'),
    '--http-listen',
    listen,
    ...other,
  ]);
  t.deepEqual([sameFolder.code, sameAddress.code], [1, 1]);
  t.false(existsSync(join(folder, 'server.starts')), 'no second server was started');
  t.is(startTimeOf(supervisor.child.pid!) !== undefined, true);
});

test.serial('an address that another process listens on, by whatever name, is not shared', async (t) => {
  const squatter = createServer();
  await new Promise<void>((resolve) => squatter.listen({ port: 0, host: '127.0.0.1' }, resolve));
  t.teardown(() => squatter.close());
  const { port: taken } = squatter.address() as AddressInfo;
  for (const listen of [`127.0.0.1:${taken}`, `0.0.0.0:${taken}`]) {
    const folder = temporaryFolder(t);
    const args = ['--state-dir', join(folder, 'state'), '--caddy-bin', fakeServer(folder), '--kernel-bans', 'off'];
    args.push('--https-listen', 'none', '--hold-socket', 'none');
    const { code, output } = await run(t, ['supervise', ...args, '--http-listen', listen]);
    t.is(code, 1, output);
    t.true(output.includes('another process listens on this address'), output);
    t.false(existsSync(join(folder, 'server.starts')));
  }
});

/** Binds abstract names as another user, as far as this one may. */
async function squat(t: ExecutionContext, names: string[]): Promise<void> {
  const script = `if (process.getuid() === 0) { process.setgroups([]); process.setgid(65534); process.setuid(65534); }
    const { createServer } = require('node:net');
    let bound = 0;
    for (const name of process.argv.slice(1))
      createServer().listen({ path: String.fromCharCode(0) + name }, () => ++bound === process.argv.length - 1 && console.log('bound'));`;
  const child = spawn(process.execPath, ['-e', script, ...names], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.teardown(() => child.kill('SIGKILL'));
  await new Promise<void>((resolve, reject) => {
    child.stdout.once('data', () => resolve());
    child.once('exit', () => reject(new Error('the names could not be bound')));
  });
}

test.serial('another user who binds the names of sockets keeps no node from starting', async (t) => {
  const folder = temporaryFolder(t);
  const stateDir = join(folder, 'state');
  mkdirSync(stateDir, { mode: 0o700 });
  const { dev, ino } = statSync(stateDir);
  const listen = `127.0.0.1:${port++}`;
  const names = [`supervise/${dev}:${ino}`, `run/${dev}:${ino}`, `listen/${listen}`];
  await squat(
    t,
    names.map((name) => `svc-lock/${name}`),
  );
  const supervisor = await supervise(t, folder, listen);
  supervisor.child.kill('SIGTERM');
  t.is(await supervisor.ended, 0, supervisor.output());
});

test.serial('a process that reused the pid of a dead child is left alone', async (t) => {
  const folder = temporaryFolder(t);
  const bystander = spawn('sleep', ['600'], { stdio: 'ignore' });
  t.teardown(() => bystander.kill('SIGKILL'));
  const stateDir = join(folder, 'state');
  mkdirSync(stateDir, { mode: 0o700 });
  writeFileSync(
    join(openRunFolder(stateDir), 'supervisor.lock'),
    JSON.stringify({
      supervisor: { pid: 999_999, startTime: '1' },
      children: [{ pid: bystander.pid, startTime: '1' }],
    }),
  );
  const supervisor = await supervise(t, folder);
  t.is(bystander.exitCode, null);
  supervisor.child.kill('SIGTERM');
  await supervisor.ended;
  t.is(bystander.signalCode, null);
});

test.serial('a binary that is not there ends with 1 and names the option', async (t) => {
  const { code, output } = await run(t, [
    'supervise',
    '--state-dir',
    join(temporaryFolder(t), 'state'),
    '--caddy-bin',
    '/nonexistent/caddy',
  ]);
  t.is(code, 1);
  t.true(output.includes('--caddy-bin'));
});

test.serial(
  'an agent without identity waits, takes one that appears, follows the console, and enrolls no second time meanwhile',
  async (t) => {
    const testConsole = await console_(t);
    testConsole.publish([{ kind: 'site', id: 'a', body: Buffer.from('x') }]);
    const supervisor = await supervise(t);
    await until(t, 'waiting', () => supervisor.output().includes('agent waits for an identity'));
    t.is((await run(t, enrollArguments(testConsole, supervisor.stateDir), { input: 'ewt_goodtoken1' })).code, 0);
    await until(t, 'heartbeat', () => testConsole.heartbeats.length > 0 && testConsole.watchers === 1);
    t.false(testConsole.heartbeats[0]!.dataPlaneHealthy);
    // Of a data plane that has not answered nothing is known.
    t.deepEqual(testConsole.heartbeats[0]!.info!.features, [
      'canary-v1',
      'feeds-v1',
      'metrics-v1',
      'partial-config-v1',
      'tasks-v1',
    ]);
    await until(t, 'journal', () => readFileSync(join(supervisor.stateDir, 'edge/config.journal')).includes('site'));
    const forced = await run(t, [...enrollArguments(testConsole, supervisor.stateDir), '--force'], {
      input: 'ewt_goodtoken1',
    });
    t.is(forced.code, 1);
    t.true(forced.output.includes('agent is running'));
    const status = await run(t, ['status', '--state-dir', supervisor.stateDir]);
    t.is(status.code, 3, status.output);
    t.true(status.output.includes('node-1'));
    t.regex(status.output, /^protection: +no challenge keys, 0 own bans, 0 sites above normal$/m);
    supervisor.child.kill('SIGTERM');
    t.is(await supervisor.ended, 0);
  },
);

test.serial('an event that cannot be decoded is skipped and said, and the stream goes on', async (t) => {
  const testConsole = await console_(t);
  const supervisor = await supervise(t);
  t.is((await run(t, enrollArguments(testConsole, supervisor.stateDir), { input: 'ewt_goodtoken1' })).code, 0);
  await until(t, 'the stream', () => testConsole.watchers === 1);
  const opened = testConsole.watches.length;
  const rubbish = Buffer.from([0xff, 0xff, 0xff]);
  testConsole.push({ case: 'configDelta', value: rubbish });
  testConsole.push({ case: 'banBatch', value: rubbish });
  testConsole.publish([{ kind: 'site', id: 'after', body: Buffer.from('x') }]);
  await until(t, 'what came after', () =>
    readFileSync(join(supervisor.stateDir, 'edge/config.journal')).includes('after'),
  );
  t.regex(supervisor.output(), /message not decodable, skipped/);
  t.is(testConsole.watches.length, opened);
  supervisor.child.kill('SIGTERM');
  t.is(await supervisor.ended, 0);
});
