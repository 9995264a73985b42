// Answers to challenges at a real edge whose replay store holds 2.4 million answers: right and wrong ones, js and pow. The
// edge and the load generator (Go, with the cluster's key) share two cores, as an edge shares its machine.
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { ChallengeType } from '../proto/gen/svc/config/v1/protection_pb.js';
import { SECRET, startChallengedEdge } from './lib/challenged-edge.ts';
import { siteHost, siteId } from './lib/edge-state.ts';
import { cpuSeconds, residentMiB } from './lib/machine.ts';
import { buildGo } from './lib/servers.ts';
import { median, medianInterval, round2 } from './lib/stats.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'answers to challenges checked per second, with 2.4 million answers remembered';

const AIM_RPS = 25_000;
const REMEMBERED = 2_400_000;
const CPUS = '0,1';
const ANSWERS_PER_LOAD = 25_000;
const ROUNDS = 9;
/** Right answers of two kinds are remembered: the store holds REMEMBERED of them half-way. */
const ADDED = ROUNDS * 2 * ANSWERS_PER_LOAD;
const root = path.resolve(import.meta.dirname, '..');

interface Load {
  requests: number;
  seconds: number;
  rps: number;
  p50Ms: number;
  p99Ms: number;
  unexpected: number;
}

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const rounds = quick ? 2 : ROUNDS;
  const seconds = quick ? 1 : 5;
  const remembered = quick ? REMEMBERED / 20 : REMEMBERED - ADDED / 2;
  const folder = mkdtempSync(path.join(os.tmpdir(), 'bench-verify-'));
  mkdirSync(path.join(root, '.cache'), { recursive: true });
  const program = buildGo(path.join(root, 'bench/challenge-load'), path.join(root, '.cache/challenge-load'));
  const protection = [{ underAttack: true, underAttackChallenge: ChallengeType.POW }];
  // The origin is never asked.
  const state = { folder, sites: 1, origin: { address: '127.0.0.1', port: 9 }, protection };
  const { server, client } = await startChallengedEdge(state, CPUS);
  let first = 0;
  const load = async (options: Record<string, string | number | boolean>): Promise<Load> => {
    const all = {
      addr: `127.0.0.1:${server.port}`,
      host: siteHost(0),
      site: siteId(0),
      key: SECRET.toString('hex'),
      first,
      ...options,
    };
    const words = Object.entries(all).map(([name, value]) => `-${name}=${value}`);
    const { stdout } = await promisify(execFile)('taskset', ['-c', CPUS, program, ...words], { timeout: 300_000 });
    const result = JSON.parse(stdout) as Load;
    first += result.requests + 100_000;
    if (result.unexpected > result.requests / 1000) {
      throw new Error(`${result.unexpected} of ${result.requests} answers were not expected`);
    }
    return result;
  };
  try {
    // While the first of them are not forgotten yet.
    const filling = await load({ kind: 'js', requests: remembered, seconds: 240, pipeline: 16 });
    log(`${filling.requests} answers remembered after ${round2(filling.seconds)} s`);
    const loads = new Map<string, Load[]>();
    const micros = new Map<string, number[]>();
    for (let round = 0; round < rounds; round++) {
      for (const kind of ['js', 'pow']) {
        for (const valid of [true, false]) {
          const name = `${kind}${valid ? 'Valid' : 'Invalid'}`;
          const before = cpuSeconds(server.pid);
          const result = await load({ kind, valid, seconds, requests: ANSWERS_PER_LOAD });
          loads.set(name, [...(loads.get(name) ?? []), result]);
          const cost = ((cpuSeconds(server.pid) - before) / result.requests) * 1e6;
          micros.set(name, [...(micros.get(name) ?? []), cost]);
          log(`round ${round + 1} ${name}: ${Math.round(result.rps)}/s, p99 ${round2(result.p99Ms)} ms`);
        }
      }
    }
    const counters = (await client.getStatus()).challenges!;
    const figures: Record<string, unknown> = { remembered: filling.requests, MiB: Math.round(residentMiB(server.pid)) };
    const lows: number[] = [];
    for (const [name, results] of loads) {
      const interval = medianInterval(results.map((each) => each.rps));
      lows.push(interval.median);
      figures[name] = {
        rps: Math.round(interval.median),
        rpsInterval: [Math.round(interval.low), Math.round(interval.high)],
        p99Ms: round2(median(results.map((each) => each.p99Ms))),
        cpuMicros: round2(median(micros.get(name)!)),
      };
    }
    return {
      figures,
      aims: [
        { aim: `≥ ${AIM_RPS}/s for each kind`, reached: lows.every((rps) => rps >= AIM_RPS) },
        { aim: 'no answer met a full store', reached: counters.overflowed === 0n },
      ],
      programs: { go: ['go', 'version'] },
    };
  } finally {
    client.close();
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}
