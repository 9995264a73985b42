// Floods against the real data plane, played by the attack kit: who is banned, which level rises, who gets through.
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import test, { type ExecutionContext } from 'ava';
import { EdgeClient } from '../../agents/edge/caddy/edge-client.ts';
import { type AttackSecond, attack } from '../../bench/lib/attack.ts';
import { edgeCommand } from '../../bench/lib/edge.ts';
import { siteHost, writeEdgeState } from '../../bench/lib/edge-state.ts';
import { answers, freePort, startServer } from '../../bench/lib/servers.ts';
import { ClientIpMode } from '../../proto/gen/svc/config/v1/cluster_pb.js';
import { CcPolicySchema, ChallengeType } from '../../proto/gen/svc/config/v1/protection_pb.js';
import type { SecurityBatch } from '../../proto/gen/svc/edge/v1/edge_pb.js';
import {
  ChallengeKeysSchema,
  type SecurityEvent,
  SecurityEventKind,
  type SiteSecurity,
} from '../../proto/gen/svc/node/v1/security_pb.js';
import { eventually } from '../helpers/eventually.ts';

const HEADER = 'x-demo-client-ip';

interface Edge {
  port: number;
  client: EdgeClient;
  /** Everything the data plane told since its start. */
  heard: SecurityBatch[];
  /** The site above normal, undefined while it is not. */
  state(): Promise<SiteSecurity | undefined>;
}

interface Thresholds {
  siteQps?: number;
  urlQps?: number;
  ipQps?: number;
  originErrorPercent?: number;
  maxLevel?: ChallengeType;
}

async function startEdge(t: ExecutionContext, thresholds: Thresholds): Promise<Edge> {
  const origin = createServer((request, response) => {
    response.statusCode = request.url?.startsWith('/status/503') ? 503 : 200;
    response.end('the site');
  });
  await new Promise<void>((resolve) => origin.listen(0, '127.0.0.1', resolve));
  const folder = mkdtempSync(join(tmpdir(), 'flood-'));
  const values = {
    maxLevel: ChallengeType.CAPTCHA,
    windowSeconds: 5,
    ipBanSeconds: 600,
    originErrorMinRequests: 20,
    escalateAfterSeconds: 1,
    cooldownSeconds: 1,
    ...thresholds,
  };
  writeEdgeState({
    folder,
    sites: 1,
    origin: { address: '127.0.0.1', port: (origin.address() as AddressInfo).port },
    clientIp: { mode: ClientIpMode.HEADER, header: HEADER, trustedCidrs: ['127.0.0.0/8'] },
    protection: [{ powDifficulty: 8, powHighDifficulty: 10, cc: create(CcPolicySchema, { thresholds: values }) }],
  });
  const port = await freePort();
  const server = await startServer('edge', '0-63', edgeCommand(folder, port), port, () => answers(port, siteHost(0)));
  const client = new EdgeClient(join(folder, 'run', 'edge.sock'));
  await client.setChallengeKeys({
    keys: create(ChallengeKeysSchema, { version: 1n, current: { id: 'k1', secret: Buffer.alloc(32, 7) } }),
  });
  const heard: SecurityBatch[] = [];
  const listening = new AbortController();
  const listened = (async () => {
    for await (const batch of client.watchSecurity({ instanceId: '', after: 0n }, listening.signal)) heard.push(batch);
  })().catch(() => undefined);
  t.teardown(async () => {
    listening.abort();
    await listened;
    await server.stop();
    origin.closeAllConnections();
    await new Promise((resolve) => origin.close(resolve));
    rmSync(folder, { recursive: true, force: true });
  });
  return { port, client, heard, state: async () => (await client.getStatus()).security[0] };
}

/** Plays a shape until `done`, and gives its seconds. */
async function play(
  { port }: Edge,
  options: Record<string, string | number>,
  done: (seconds: readonly AttackSecond[]) => boolean | Promise<boolean>,
): Promise<AttackSecond[]> {
  const seconds: AttackSecond[] = [];
  const all = { target: `127.0.0.1:${port}`, host: siteHost(0), 'client-header': HEADER, every: '100ms', ...options };
  for await (const second of attack({ seconds: 120, visitors: 2, ...all })) {
    seconds.push(second);
    if (await done(seconds)) return seconds;
  }
  throw new Error(`the flood ended before: ${JSON.stringify(seconds.at(-1))}`);
}

const events = ({ heard }: Edge): SecurityEvent[] => heard.flatMap((batch) => batch.events);
const counts = (seconds: readonly AttackSecond[], name: string): number =>
  seconds.reduce((total, { flood }) => total + (flood.answers?.[name] ?? 0), 0);

test('one address that asks too much is banned, and nobody else', async (t) => {
  const edge = await startEdge(t, { ipQps: 20 });
  const seconds = await play(
    edge,
    { shape: 'one-address', rate: 100, connections: 1 },
    (all) => counts(all, '403 ip-banned') > 50 && all.length > 3,
  );
  // Each was answered, also the one that was too many.
  t.true(seconds.every(({ flood }) => flood.failed === 0));
  await eventually(async () => edge.heard.some((batch) => batch.bans.length > 0));
  const bans = edge.heard.flatMap((batch) => batch.bans);
  t.deepEqual(
    bans.map(({ cidr, reason, metric, threshold, windowSeconds }) => ({
      cidr,
      reason,
      metric,
      threshold,
      windowSeconds,
    })),
    [{ cidr: '198.18.0.0/32', reason: 'cc_ip_rate', metric: 'ip_qps', threshold: 20n, windowSeconds: 5 }],
  );
  // 5 seconds of 20 requests; a window that ends meanwhile lets a few more through.
  const passed = counts(seconds, '200');
  t.true(passed >= 100 && passed < 150, `${passed}`);
  await eventually(async () => events(edge).length > 0);
  t.deepEqual(
    events(edge).map(({ kind, address, metric }) => ({ kind, address, metric })),
    [{ kind: SecurityEventKind.IP_BANNED, address: '198.18.0.0', metric: 'ip_qps' }],
  );
  t.true(seconds.every(({ visitors }) => visitors.failed === 0));
});

test('a flood from many addresses raises the site to its highest level, people get through, calm lowers it', async (t) => {
  const edge = await startEdge(t, { siteQps: 100, maxLevel: ChallengeType.CAPTCHA });
  const seconds = await play(
    edge,
    { shape: 'many-addresses', rate: 400 },
    async (all) => (await edge.state())?.level === 4 && all.at(-1)!.visitors.challenges?.captcha !== undefined,
  );
  for (const name of ['302 cookie302', '403 js', '403 pow', '403 captcha']) t.true(counts(seconds, name) > 0, name);
  t.true(counts(seconds, '200') > 0 && counts([seconds.at(-1)!], '200') === 0);
  t.deepEqual(
    seconds.flatMap(({ visitors }) => Object.keys(visitors.failures ?? {})),
    [],
  );
  // What the data plane tells arrives a moment after what it answers when asked.
  const told = () => edge.heard.flatMap((batch) => batch.sites).at(-1)?.site?.level === 0;
  await eventually(async () => (await edge.state()) === undefined && told(), { timeoutMs: 60_000 });
  const levels = events(edge).map(({ previousLevel, level }) => `${previousLevel}-${level}`);
  t.deepEqual(levels, ['0-1', '1-2', '2-3', '3-4', '4-3', '3-2', '2-1', '1-0']);
  const [first] = events(edge);
  t.is(first!.metric, 'site_qps');
  t.true(first!.topIps.length > 0 && first!.topIps.length <= 10);
  t.is(first!.topPaths[0]!.value, '/');
  t.is(events(edge).at(-1)!.metric, 'cooldown');
});

test('a flood of one URL raises that path alone', async (t) => {
  const edge = await startEdge(t, { urlQps: 50, maxLevel: ChallengeType.JS });
  const seconds = await play(
    edge,
    { shape: 'one-url', path: '/hot', rate: 200 },
    async (all) => ((await edge.state())?.paths.length ?? 0) > 0 && counts(all, '403 js') > 0,
  );
  const state = await edge.state();
  t.is(state?.level, 0);
  t.deepEqual(
    state?.paths.map(({ path }) => path),
    ['/hot'],
  );
  t.true(seconds.every(({ visitors }) => visitors.failed === 0 && visitors.challenges === null));
});

test('an origin that fails raises the site', async (t) => {
  const edge = await startEdge(t, { originErrorPercent: 50, maxLevel: ChallengeType.JS });
  await play(
    edge,
    { shape: 'failing-origin', rate: 100, visitors: 0 },
    async (all) => (await edge.state())?.level === 2 && counts(all, '403 js') > 0 && events(edge).length > 0,
  );
  t.is(events(edge)[0]!.metric, 'origin_error_rate');
  t.true(events(edge)[0]!.observed > 50);
});

test('levels that are given back hold', async (t) => {
  const edge = await startEdge(t, { siteQps: 100 });
  await edge.client.restoreSecurity({
    bans: [],
    sites: [
      {
        $typeName: 'svc.edge.v1.SiteLevelState',
        siteId: '01900000-0000-7000-8000-000000000000',
        site: { $typeName: 'svc.edge.v1.LevelState', level: 2, calmMs: 0n },
        paths: [],
      },
    ],
  });
  t.is((await edge.state())?.level, 2);
  await play(edge, { shape: 'many-addresses', rate: 400 }, (all) => counts(all, '403 js') + counts(all, '403 pow') > 0);
});
