// A flood from 5,000 addresses beside 20 people behind browsers: from when on the flood stays away from the origin, whether
// people get through meanwhile, and when all is as before. The edge is the data plane alone, under the template's
// thresholds; the kit plays attackers and people on the other core.
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { create } from '@bufbuild/protobuf';
import { EdgeClient } from '../agents/edge/caddy/edge-client.ts';
import { ClientIpMode } from '../proto/gen/svc/config/v1/cluster_pb.js';
import { CcPolicySchema, type CcThresholds, ChallengeType } from '../proto/gen/svc/config/v1/protection_pb.js';
import { ChallengeKeysSchema } from '../proto/gen/svc/node/v1/security_pb.js';
import { type AttackSecond, attack, attackBinary } from './lib/attack.ts';
import { edgeCommand } from './lib/edge.ts';
import { siteHost, writeEdgeState } from './lib/edge-state.ts';
import { answers, freePort, nginxCommand, type Server, startServer } from './lib/servers.ts';
import { percentile, round2 } from './lib/stats.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'people beside a flood from 5,000 addresses: who gets through, how soon the origin has peace';
export const needs = ['nginx'];

const EDGE_CPU = '0';
const LOAD_CPU = '1';
const CLIENT_HEADER = 'x-bench-client';
const ADDRESSES = 5000;
const VISITORS = 20;
const RATE = 3000;
const LEVELS = ['normal', 'cookie302', 'js', 'pow', 'captcha'] as const;
const POLL_MS = 100;
/** The flood is kept from the origin when less than this share of it gets there. */
const PASSED_SHARE = 0.01;

interface Plan {
  before: number;
  flood: number;
  after: number;
  /** Own thresholds instead of the template's, to see quickly that it works. */
  thresholds?: Omit<CcThresholds, '$typeName' | '$unknown' | 'highPowInsteadOfCaptcha'>;
}

const FULL: Plan = { before: 15, flood: 60, after: 285 };
const QUICK: Plan = {
  before: 4,
  flood: 16,
  after: 24,
  thresholds: {
    maxLevel: ChallengeType.CAPTCHA,
    windowSeconds: 5,
    siteQps: 500,
    urlQps: 0,
    ipQps: 50,
    ipBanSeconds: 60,
    originErrorPercent: 50,
    originErrorMinRequests: 100,
    escalateAfterSeconds: 2,
    cooldownSeconds: 3,
  },
};

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const plan = quick ? QUICK : FULL;
  const folder = mkdtempSync(path.join(os.tmpdir(), 'bench-flood-'));
  const started: Server[] = [];
  attackBinary();
  try {
    const port = await startEdge(folder, plan, started);
    const client = new EdgeClient(path.join(folder, 'run', 'edge.sock'));
    const key = { id: 'bench', secret: crypto.getRandomValues(new Uint8Array(32)) };
    await client.setChallengeKeys({ keys: create(ChallengeKeysSchema, { version: 1n, current: key }) });
    const levels = followLevels(client, log);
    const start = Date.now();
    const seconds: AttackSecond[] = [];
    for await (const second of attack(
      {
        target: `127.0.0.1:${port}`,
        host: siteHost(0),
        'client-header': CLIENT_HEADER,
        shape: 'many-addresses',
        addresses: ADDRESSES,
        rate: RATE,
        visitors: VISITORS,
        before: plan.before,
        seconds: plan.flood,
        after: plan.after,
      },
      LOAD_CPU,
    )) {
      seconds.push(second);
      if (second.second % 10 === 0) log(`${second.second} s ${JSON.stringify(second.flood.answers ?? {})}`);
    }
    return result(plan, seconds, levels.stop(), start + plan.before * 1000);
  } finally {
    for (const server of started.reverse()) await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function startEdge(folder: string, plan: Plan, started: Server[]): Promise<number> {
  const originPort = await freePort();
  const site = `  server { listen 127.0.0.1:${originPort} backlog=4096; location / { return 200 "${'x'.repeat(1024)}"; } }`;
  const nginx = nginxCommand(path.join(folder, 'origin'), site);
  started.push(await startServer('origin', LOAD_CPU, nginx, originPort, () => answers(originPort, 'origin')));
  const { thresholds } = plan;
  writeEdgeState({
    folder,
    sites: 1,
    origin: { address: '127.0.0.1', port: originPort },
    clientIp: { mode: ClientIpMode.HEADER, header: CLIENT_HEADER, trustedCidrs: ['127.0.0.0/8'] },
    protection: [{ cc: create(CcPolicySchema, thresholds ? { thresholds } : { followTemplate: true }) }],
  });
  const port = await freePort();
  const ready = () => answers(port, siteHost(0));
  started.push(await startServer('edge', EDGE_CPU, edgeCommand(folder, port), port, ready));
  return port;
}

interface LevelChange {
  level: number;
  at: number;
}

/** Notes when the site's level changes. */
function followLevels(client: EdgeClient, log: (line: string) => void): { stop(): LevelChange[] } {
  const changes: LevelChange[] = [];
  let level = 0;
  const timer = setInterval(() => {
    void client.getStatus().then(({ security }) => {
      const now = security[0]?.level ?? 0;
      if (now === level) return;
      level = now;
      changes.push({ level, at: Date.now() });
      log(`level ${LEVELS[level]}`);
    });
  }, POLL_MS);
  return {
    stop: () => {
      clearInterval(timer);
      return changes;
    },
  };
}

function result(
  plan: Plan,
  seconds: readonly AttackSecond[],
  changes: readonly LevelChange[],
  floodAt: number,
): BenchResult {
  const floodSeconds = seconds.filter((each) => each.phase === 'flood');
  const first = floodSeconds.findIndex(({ flood }) => flood.sent > 0 && passed(flood) < flood.sent * PASSED_SHARE);
  const mitigated = first < 0 ? [] : seconds.slice(seconds.indexOf(floodSeconds[first]!));
  const end = floodAt + plan.flood * 1000;
  const reached = (name: (typeof LEVELS)[number]): number | null => {
    const change = changes.find(({ level }) => level >= LEVELS.indexOf(name));
    return change ? change.at - floodAt : null;
  };
  const recovered = changes.findLast(({ level }) => level === 0);
  const figures = {
    honestSuccess: success(mitigated),
    timeToMitigateMs: first < 0 ? null : first * 1000,
    timeToRecoverMs: recovered ? recovered.at - end : null,
    levelsMs: Object.fromEntries(LEVELS.slice(1).map((name) => [name, reached(name)])),
    before: honest(seconds.filter(({ phase }) => phase === 'before')),
    during: honest(floodSeconds),
    after: honest(seconds.filter(({ phase }) => phase === 'after')),
    floodPerSecond: Math.round(sum(floodSeconds.map(({ flood }) => flood.sent)) / Math.max(floodSeconds.length, 1)),
    floodPassedOnceMitigated: sum(mitigated.map(({ flood }) => passed(flood))),
    failures: seconds.flatMap(({ visitors }) => Object.keys(visitors.failures ?? {})).slice(0, 10),
  };
  const js = figures.levelsMs.js ?? Number.NaN;
  const captcha = figures.levelsMs.captcha ?? Number.NaN;
  return {
    figures,
    aims: [
      { aim: '≥ 99 % of visits succeed once the flood is mitigated', reached: figures.honestSuccess >= 0.99 },
      ...(plan.thresholds
        ? []
        : [
            { aim: '≤ 25 s to js', reached: js <= 25_000 },
            { aim: '≤ 55 s to captcha', reached: captcha <= 55_000 },
          ]),
    ],
    programs: { go: ['go', 'version'], nginx: ['nginx', '-v'] },
    notes: [
      'flood and people come from the other core of the same machine, one visitor computing at a time beside the flood; ' +
        'people compute instead of typing captchas',
    ],
  };
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

const passed = (flood: AttackSecond['flood']): number => flood.answers?.['200'] ?? 0;

function success(seconds: readonly AttackSecond[]): number {
  const visits = sum(seconds.map(({ visitors }) => visitors.visits));
  const failed = sum(seconds.map(({ visitors }) => visitors.failed));
  return visits === 0 ? 0 : round4(1 - failed / visits);
}

const round4 = (value: number): number => Math.round(value * 10_000) / 10_000;

function honest(seconds: readonly AttackSecond[]): { success: number; p50Ms: number; p99Ms: number } {
  const took = seconds.flatMap(({ visitors }) => visitors.tookMs ?? []);
  return { success: success(seconds), p50Ms: round2(percentile(took, 50)), p99Ms: round2(percentile(took, 99)) };
}
