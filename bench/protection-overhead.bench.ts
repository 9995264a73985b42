// Proxied requests with CC mitigation on and a valid pass beside the same without protection, in one edge and in turns, and
// both beside the old edge. The edges have core 0; origin (nginx) and wrk have core 1.
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { create } from '@bufbuild/protobuf';
import { ClientIpMode } from '../proto/gen/svc/config/v1/cluster_pb.js';
import { CcPolicySchema, CcThresholdsSchema, ChallengeType } from '../proto/gen/svc/config/v1/protection_pb.js';
import { beside, besideFigures, judge, threeOf } from './lib/beside.ts';
import { type ChallengedEdge, passOf, startChallengedEdge } from './lib/challenged-edge.ts';
import { presentEdge } from './lib/edge.ts';
import { siteHost } from './lib/edge-state.ts';
import { cpuSeconds } from './lib/machine.ts';
import { OLD_COMMIT, oldEdge } from './lib/old-edge.ts';
import { answers, freePort, nginxCommand, startServer } from './lib/servers.ts';
import { median, medianInterval, round2 } from './lib/stats.ts';
import { wrk } from './lib/wrk.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'proxied requests with CC and a valid pass beside the same without protection, and the old edge';
export const needs = ['nginx', 'wrk'];

const AIM_OVERHEAD = 0.92;
const CONNECTIONS = 64;
const EDGE_CPU = '0';
const LOAD_CPU = '1';
const CLIENT = { 'X-Bench-Client': '203.0.113.9' };
// Every trigger counts, none is reached.
const MOST = 1_000_000;

const KINDS = ['protected', 'plain'] as const;
type Kind = (typeof KINDS)[number];
// The present one between two of the old: what equal edges differ by in this run.
const EDGES = ['old', 'present', 'oldAgain'] as const;
type EdgeName = (typeof EDGES)[number];

interface Sample {
  rps: number;
  micros: number;
  p99: number;
}
type Runs = Record<EdgeName, Record<Kind, Sample[]>>;

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const rounds = quick ? 4 : 20;
  const seconds = quick ? 1 : 2;
  const folder = mkdtempSync(path.join(os.tmpdir(), 'bench-overhead-'));
  const originPort = await freePort();
  const page = `  server { listen 127.0.0.1:${originPort} backlog=4096; location / { return 200 "${'x'.repeat(1024)}"; } }`;
  const command = nginxCommand(path.join(folder, 'origin'), page);
  const origin = await startServer('origin', LOAD_CPU, command, originPort, () => answers(originPort, 'origin'));
  const thresholds = create(CcThresholdsSchema, {
    maxLevel: ChallengeType.CAPTCHA,
    windowSeconds: 10,
    siteQps: MOST,
    urlQps: MOST,
    ipQps: MOST,
    ipBanSeconds: 600,
    originErrorPercent: 50,
    originErrorMinRequests: 100,
    escalateAfterSeconds: 10,
    cooldownSeconds: 60,
  });
  const edges: Record<EdgeName, ChallengedEdge> = {} as Record<EdgeName, ChallengedEdge>;
  try {
    const old = await oldEdge();
    for (const name of EDGES) {
      edges[name] = await startChallengedEdge(
        {
          folder: path.join(folder, name),
          sites: 2,
          origin: { address: '127.0.0.1', port: originPort },
          clientIp: { mode: ClientIpMode.HEADER, header: 'x-bench-client', trustedCidrs: ['127.0.0.0/8'] },
          protection: [
            {
              underAttack: true,
              underAttackChallenge: ChallengeType.COOKIE302,
              passTtlSeconds: 86_400,
              cc: create(CcPolicySchema, { thresholds }),
            },
          ],
        },
        EDGE_CPU,
        name === 'present' ? presentEdge : old,
      );
    }
    const runs = Object.fromEntries(EDGES.map((name) => [name, { protected: [], plain: [] }])) as unknown as Runs;
    const passes: Partial<Record<EdgeName, string>> = {};
    for (const name of EDGES) passes[name] = await passOf(edges[name].server.port, siteHost(0), CLIENT);
    for (let round = -1; round < rounds; round++) {
      // Another one first in each round; all send the same headers.
      const kinds = round % 2 === 0 ? (['protected', 'plain'] as const) : (['plain', 'protected'] as const);
      for (const name of round % 4 < 2 ? EDGES : EDGES.toReversed()) {
        for (const kind of kinds) {
          const { server } = edges[name];
          const before = cpuSeconds(server.pid);
          const result = await wrk(folder, {
            url: `http://127.0.0.1:${server.port}/`,
            seconds,
            connections: CONNECTIONS,
            cpus: LOAD_CPU,
            headers: { ...CLIENT, Cookie: passes[name]!, Host: siteHost(kind === 'protected' ? 0 : 1) },
          });
          if (result.unexpected > result.requests / 1000) {
            throw new Error(`${name} ${kind}: ${result.unexpected} were refused`);
          }
          if (round < 0) continue;
          const micros = ((cpuSeconds(server.pid) - before) / result.requests) * 1e6;
          runs[name][kind].push({ rps: result.rps, micros, p99: result.p99Ms });
          log(`round ${round + 1} ${name} ${kind}: ${Math.round(result.rps)} req/s, ${round2(micros)} µs of the edge`);
        }
      }
    }
    return result(runs);
  } finally {
    for (const { client, server } of Object.values(edges)) {
      client.close();
      await server.stop();
    }
    await origin.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

function result(runs: Runs): BenchResult {
  // Round by round: what disturbs a round disturbs both sides of it. The edge's own time is what a busy edge is held by.
  const overhead = ({ protected: guarded, plain }: Runs[EdgeName]) => ({
    ratio: medianInterval(guarded.map(({ rps }, round) => rps / plain[round]!.rps)),
    cpuRatio: medianInterval(guarded.map(({ micros }, round) => plain[round]!.micros / micros)),
  });
  const shown = (samples: readonly Sample[]) => ({
    rps: Math.round(median(samples.map(({ rps }) => rps))),
    cpuMicros: round2(median(samples.map(({ micros }) => micros))),
    p99Ms: round2(median(samples.map(({ p99 }) => p99))),
  });
  const besideOld = (kind: Kind) => {
    const micros = (name: EdgeName) => runs[name][kind].map((each) => each.micros);
    return beside({ old: micros('old'), oldAgain: micros('oldAgain'), present: micros('present') }, 'less');
  };
  const compared = { protected: besideOld('protected'), plain: besideOld('plain') };
  const now = overhead(runs.present);
  const before = overhead(runs.old);
  const judged = KINDS.map((kind) => judge(`processor time per ${kind} request`, compared[kind]));
  return {
    figures: {
      protected: shown(runs.present.protected),
      plain: shown(runs.present.plain),
      ratio: threeOf(now.ratio),
      cpuRatio: threeOf(now.cpuRatio),
      oldCommit: OLD_COMMIT,
      oldProtected: shown(runs.old.protected),
      oldPlain: shown(runs.old.plain),
      oldRatio: threeOf(before.ratio),
      oldCpuRatio: threeOf(before.cpuRatio),
      protectedProcessorTime: besideFigures(compared.protected),
      plainProcessorTime: besideFigures(compared.plain),
    },
    aims: [
      {
        aim: `≥ ${AIM_OVERHEAD} of the requests per second without protection`,
        reached: now.ratio.median >= AIM_OVERHEAD,
      },
      ...judged.flatMap(({ aims }) => aims),
    ],
    notes: judged.flatMap(({ notes }) => notes),
    programs: { nginx: ['nginx', '-v'], wrk: ['wrk', '-v'], go: ['go', 'version'] },
  };
}
