// Proxied requests with CC mitigation on and a valid pass beside the same without protection, in one edge and in turns. The
// edge has core 0; origin (nginx) and wrk have core 1.
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { create } from '@bufbuild/protobuf';
import { ClientIpMode } from '../proto/gen/svc/config/v1/cluster_pb.js';
import { CcPolicySchema, CcThresholdsSchema, ChallengeType } from '../proto/gen/svc/config/v1/protection_pb.js';
import { passOf, startChallengedEdge } from './lib/challenged-edge.ts';
import { siteHost } from './lib/edge-state.ts';
import { cpuSeconds } from './lib/machine.ts';
import { answers, freePort, nginxCommand, startServer } from './lib/servers.ts';
import { median, medianInterval, round2 } from './lib/stats.ts';
import { wrk } from './lib/wrk.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'proxied requests with CC and a valid pass beside the same without protection';

const AIM_RATIO = 0.92;
const CONNECTIONS = 64;
const EDGE_CPU = '0';
const LOAD_CPU = '1';
const CLIENT = { 'X-Bench-Client': '203.0.113.9' };
// Every trigger counts, none is reached.
const MOST = 1_000_000;

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const rounds = quick ? 4 : 15;
  const seconds = quick ? 1 : 3;
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
  const { server, client } = await startChallengedEdge(
    {
      folder: path.join(folder, 'edge'),
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
  );
  try {
    const Cookie = await passOf(server.port, siteHost(0), CLIENT);
    const runs: Record<'protected' | 'plain', { rps: number; micros: number; p99: number }[]> = {
      protected: [],
      plain: [],
    };
    for (let round = -1; round < rounds; round++) {
      // Another one first in each round; both send the same headers.
      const order = round % 2 === 0 ? (['protected', 'plain'] as const) : (['plain', 'protected'] as const);
      for (const name of order) {
        const before = cpuSeconds(server.pid);
        const result = await wrk(folder, {
          url: `http://127.0.0.1:${server.port}/`,
          seconds,
          connections: CONNECTIONS,
          cpus: LOAD_CPU,
          headers: { ...CLIENT, Cookie, Host: siteHost(name === 'protected' ? 0 : 1) },
        });
        if (result.unexpected > result.requests / 1000) throw new Error(`${name}: ${result.unexpected} were refused`);
        if (round < 0) continue;
        const micros = ((cpuSeconds(server.pid) - before) / result.requests) * 1e6;
        runs[name].push({ rps: result.rps, micros, p99: result.p99Ms });
        log(`round ${round + 1} ${name}: ${Math.round(result.rps)} req/s, ${round2(micros)} µs of the edge`);
      }
    }
    // Round by round: what disturbs a round disturbs both sides of it. The edge's own time is what a busy edge is held by.
    const ratio = medianInterval(runs.protected.map(({ rps }, round) => rps / runs.plain[round]!.rps));
    const cpuRatio = medianInterval(runs.protected.map(({ micros }, round) => runs.plain[round]!.micros / micros));
    const shown = (name: 'protected' | 'plain') => ({
      rps: Math.round(median(runs[name].map(({ rps }) => rps))),
      cpuMicros: round2(median(runs[name].map(({ micros }) => micros))),
      p99Ms: round2(median(runs[name].map(({ p99 }) => p99))),
    });
    return {
      figures: {
        protected: shown('protected'),
        plain: shown('plain'),
        ratio: [round2(ratio.low), round2(ratio.median), round2(ratio.high)],
        cpuRatio: [round2(cpuRatio.low), round2(cpuRatio.median), round2(cpuRatio.high)],
      },
      aims: [
        { aim: `≥ ${AIM_RATIO} of the requests per second without protection`, reached: ratio.median >= AIM_RATIO },
      ],
      programs: { nginx: ['nginx', '-v'], wrk: ['wrk', '-v'], go: ['go', 'version'] },
    };
  } finally {
    client.close();
    await server.stop();
    await origin.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}
