// The real data plane keeps what serves: entries that fail, journals that cannot be read, a process that stands still.
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import test, { type ExecutionContext } from 'ava';
import { BanPusher } from '../../agents/edge/bans/ban-pusher.ts';
import { BanStore } from '../../agents/edge/bans/ban-store.ts';
import { DataPlane } from '../../agents/edge/caddy/data-plane.ts';
import { EdgeClient } from '../../agents/edge/caddy/edge-client.ts';
import { ConfigPusher } from '../../agents/edge/config/config-pusher.ts';
import { ConfigStore } from '../../agents/edge/config/config-store.ts';
import { createLog } from '../../agents/kit/log.ts';
import { edgeCommand } from '../../bench/lib/edge.ts';
import { siteHost, siteId, writeEdgeState } from '../../bench/lib/edge-state.ts';
import { freePort } from '../../bench/lib/servers.ts';
import { root } from '../../bin/lib/root.ts';
import { type Entry, EntrySchema } from '../../proto/gen/svc/config/v1/entry_pb.js';
import { DomainForm, DomainSchema, SiteSchema } from '../../proto/gen/svc/config/v1/site_pb.js';
import { BanPositionSchema, BanSchema, BanSource } from '../../proto/gen/svc/node/v1/bans_pb.js';
import { type ConfigPosition, ConfigPositionSchema, type FailedEntry } from '../../proto/gen/svc/node/v1/config_pb.js';
import { edgeGet } from '../helpers/edge-request.ts';
import { eventually } from '../helpers/eventually.ts';

const SITES = 1500;
const FAILING = 1200;
/** A capability of no version of the edge. */
const LATER = 'later-v9';
const able = (features: readonly string[]) => !features.includes(LATER);
const NODE = { nodeId: 'bench-node', clusterId: 'bench-cluster' };

/** A state folder with sites in front of an origin. */
async function stateFolder(t: ExecutionContext, sites = SITES, journals = '.'): Promise<string> {
  const origin = createServer((_, response) => response.end('the site'));
  await new Promise<void>((resolve) => origin.listen(0, '127.0.0.1', resolve));
  const folder = mkdtempSync(join(tmpdir(), 'last-good-'));
  const inner = join(folder, journals);
  writeEdgeState({
    folder: inner,
    sites,
    origin: { address: '127.0.0.1', port: (origin.address() as AddressInfo).port },
  });
  t.teardown(async () => {
    origin.closeAllConnections();
    await new Promise((resolve) => origin.close(resolve));
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}

/** Caddy with the part of an agent that drives it. */
async function startEdge(t: ExecutionContext) {
  const folder = await stateFolder(t);
  const port = await freePort();
  const [command, ...args] = edgeCommand(folder, port);
  let caddy: ChildProcess | undefined;
  const kill = async (): Promise<void> => {
    const gone = new Promise((resolve) => (caddy ? caddy.once('exit', resolve) : resolve(undefined)));
    caddy?.kill('SIGKILL');
    await gone;
    caddy = undefined;
  };
  const run = (): void => {
    caddy = spawn(command!, args, { stdio: 'ignore' });
  };
  const log = createLog('error', {}, (line) => t.log(line));
  const observer = { put: () => undefined, remove: () => undefined, clear: () => undefined };
  const config = ConfigStore.open({ ...NODE, path: join(folder, 'config.journal'), log, observer, able });
  const bans = BanStore.open({ ...NODE, path: join(folder, 'bans.journal'), log });
  let applied: { position: ConfigPosition; failed: FailedEntry[] } | undefined;
  const dataPlane = new DataPlane({
    client: new EdgeClient(join(folder, 'run', 'edge.sock')),
    log,
    changed: () => undefined,
    answered: () => undefined,
  });
  const configPusher = new ConfigPusher({
    dataPlane,
    store: config,
    log,
    applied: (position, failed) => {
      applied = { position, failed };
    },
    repair: async () => {
      await config.rewrite();
    },
  });
  const banPusher = new BanPusher({ dataPlane, store: bans, log, applied: () => undefined });
  run();
  dataPlane.start();
  t.teardown(async () => {
    dataPlane.stop();
    await kill();
    await Promise.all([config.close(), bans.close()]);
  });
  const status = async (site: number): Promise<number> =>
    edgeGet({ host: '127.0.0.1', port }, siteHost(site)).then(
      (answer) => answer.status,
      () => 0,
    );
  await eventually(async () => (await status(0)) === 200, { timeoutMs: 60_000, what: 'the edge to serve' });
  await eventually(() => dataPlane.healthy, { what: 'the data plane to be in step' });
  const take = async (upserts: Entry[]): Promise<void> => {
    const base = config.position;
    const setHash = config.hashAfter(upserts, []);
    const position = create(ConfigPositionSchema, { ...base, revision: base.revision + 1n, setHash });
    configPusher.push(base, config.apply({ position, upserts, deletes: [] }), performance.now());
    await eventually(() => applied?.position.revision === position.revision, { what: 'the change to be applied' });
  };
  return {
    folder,
    port,
    config,
    bans,
    dataPlane,
    configPusher,
    banPusher,
    status,
    kill,
    run,
    applied: () => applied,
    take,
    /** Bodies that no version of the edge can read, for the first `count` sites. */
    breakSites: (count: number): Promise<void> =>
      take(
        Array.from({ length: count }, (_, index) =>
          create(EntrySchema, { kind: 'site', id: siteId(index), body: Buffer.from([0xff]) }),
        ),
      ),
  };
}

test.serial('more than a thousand failing entries go on serving through a compaction and a restart', async (t) => {
  const edge = await startEdge(t);
  await edge.breakSites(FAILING);
  t.is(edge.applied()!.failed.length, 1000, 'the list of failures is cut');
  t.is(await edge.status(FAILING - 1), 200);
  const answer = await edge.configPusher.failing();
  t.is(answer!.running.size, FAILING);
  await edge.config.settle(answer!.position, answer!.running);
  t.is(edge.config.unsettled, FAILING);
  await edge.config.compact();
  await edge.kill();
  edge.run();
  for (const site of [0, FAILING - 1, FAILING, SITES - 1]) {
    await eventually(async () => (await edge.status(site)) === 200, { timeoutMs: 60_000, what: siteHost(site) });
  }
  await eventually(() => edge.dataPlane.status?.sites === BigInt(SITES), { what: 'all sites after the restart' });
});

test.serial('entries that need what the edge lacks are held through a compaction and a restart', async (t) => {
  const edge = await startEdge(t);
  const later = (id: string, host: string, rest: MessageInitShape<typeof SiteSchema> = {}): Entry => {
    const site = create(SiteSchema, {
      ...rest,
      name: id,
      domains: [create(DomainSchema, { form: DomainForm.EXACT, name: host })],
    });
    return create(EntrySchema, { kind: 'site', id, body: toBinary(SiteSchema, site), features: [LATER] });
  };
  await edge.take([
    later(siteId(0), 'renamed.example'),
    later(siteId(1), siteHost(1), { disabled: true }),
    later('fresh', 'fresh.example'),
    create(EntrySchema, { kind: 'rules', id: siteId(2), features: [LATER] }),
  ]);
  const wanted = {
    [siteHost(0)]: '200',
    'renamed.example': '404 unknown-host',
    [siteHost(1)]: '503 site-disabled',
    [siteHost(2)]: '200',
    'fresh.example': '503 policy-unavailable',
  };
  const holds = () =>
    eventually(
      async () => {
        for (const [host, want] of Object.entries(wanted)) {
          const { status, headers } = await edgeGet({ host: '127.0.0.1', port: edge.port }, host);
          if ([status, headers['x-svc-error']].filter(Boolean).join(' ') !== want) return false;
        }
        return edge.dataPlane.status?.held === 4n;
      },
      { timeoutMs: 60_000, what: 'the former versions to serve' },
    );
  await holds();
  t.deepEqual(edge.applied()!.failed, [], 'held is not failed');
  const answer = await edge.configPusher.failing();
  await edge.config.settle(answer!.position, answer!.running);
  await edge.config.compact();
  await edge.kill();
  edge.run();
  await holds();
  t.pass();
});

test.serial(
  'journals that are gone while the edge serves are written anew, and no site or ban goes with them',
  async (t) => {
    const edge = await startEdge(t);
    const position = create(BanPositionSchema, { epoch: 1n, sequence: 1n });
    const hour = BigInt(Date.now() + 3_600_000);
    const ban = create(BanSchema, { id: 'b1', cidr: '192.0.2.1/32', source: BanSource.MANUAL, expiresAtMs: hour });
    const base = edge.bans.position;
    const { rows } = edge.bans.accept([ban], 0);
    const stored = edge.bans.apply(position, rows, []);
    edge.banPusher.push({ ...stored, base, target: position, liftedOwn: [] }, performance.now());
    await eventually(() => edge.dataPlane.status?.bans?.entries === 1n, { what: 'the ban' });
    const journals = ['config.journal', 'bans.journal'].map((name) => join(edge.folder, name));
    let asked = 0;
    const answers = new Set<number>();
    const asking = new AbortController();
    const visitor = (async () => {
      for (; !asking.signal.aborted; asked++) answers.add(await edge.status(asked % SITES));
    })();
    for (const path of journals) renameSync(path, `${path}.gone`);
    edge.configPusher.reload();
    edge.banPusher.reload();
    await eventually(() => journals.every(existsSync), { what: 'the journals to be written anew' });
    await eventually(() => edge.dataPlane.healthy && edge.dataPlane.message === '', {
      timeoutMs: 60_000,
      what: 'the data plane to have read them',
    });
    const before = asked;
    await eventually(() => asked > before + 50, { what: 'some more visits' });
    asking.abort();
    await visitor;
    t.deepEqual([...answers], [200]);
    t.is(edge.dataPlane.status!.sites, BigInt(SITES));
    t.is(edge.dataPlane.status!.bans!.entries, 1n);
    t.is(edge.dataPlane.status!.config!.revision, edge.config.position.revision);
  },
);

test.serial('Caddy that stands still says where its goroutines are and is replaced', async (t) => {
  const folder = await stateFolder(t, 3, 'edge');
  const port = await freePort();
  const [caddy] = edgeCommand(folder, port);
  const words = [join(root, 'agents', 'edge', 'main.ts'), 'supervise', '--state-dir', folder, '--caddy-bin', caddy!];
  words.push(
    '--http-listen',
    `127.0.0.1:${port}`,
    '--https-listen',
    'none',
    '--kernel-bans',
    'off',
    '--replace-after',
    '10',
  );
  const supervisor = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [supervisor.stdout, supervisor.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  t.teardown(async () => {
    if (supervisor.exitCode !== null || supervisor.signalCode !== null) return;
    const ended = new Promise((resolve) => supervisor.once('exit', resolve));
    supervisor.kill('SIGTERM');
    await ended;
  });
  const serves = (): Promise<boolean> =>
    edgeGet({ host: '127.0.0.1', port }, siteHost(0)).then(
      (answer) => answer.status === 200,
      () => false,
    );
  await eventually(serves, { timeoutMs: 60_000, what: 'the edge to serve' });
  const before = caddyOf(output);
  process.kill(before, 'SIGSTOP');
  await eventually(() => caddyOf(output) !== before, { timeoutMs: 90_000, what: 'another process' });
  await eventually(serves, { timeoutMs: 60_000, what: 'the edge to serve again' });
  t.regex(output, /SIGABRT: abort/);
  t.regex(output, /goroutine \d+ .*\[/);
  t.regex(output, /is unresponsive/);
  t.false(output.includes('crashed while reading a journal'));
});

/** Process id of the last Caddy that a supervisor's log tells of. */
function caddyOf(output: string): number {
  const started = [...output.matchAll(/"child":"caddy","pid":(\d+)/g)];
  return Number(started.at(-1)?.[1]);
}

test.serial('Caddy tells its parent that it lives and which journal it reads', async (t) => {
  const folder = await stateFolder(t, 1);
  const [caddy, ...args] = edgeCommand(folder, await freePort());
  const child = spawn(caddy!, args, {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
    env: { ...process.env, SVC_LIFE_FD: '3' },
  });
  t.teardown(() => child.kill('SIGKILL'));
  const told: number[] = [];
  (child.stdio[3] as NodeJS.ReadableStream).on('data', (chunk: Buffer) => told.push(...chunk));
  await eventually(() => told.filter((byte) => byte === 1).length > 1 && told.includes(4), {
    timeoutMs: 60_000,
    what: 'signs of life',
  });
  t.deepEqual(
    told.filter((byte) => byte > 1 && byte < 5),
    [2, 3, 4],
  );
});
