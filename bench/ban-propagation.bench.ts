// A ban from the API request to its enforcement: the first 403 at a real edge, its receipt by each simulated node, its
// element in the kernel's set. One by one, and as a burst. After each single ban the floor (lib/floor.ts) is measured.

import { setTimeout as sleep } from 'node:timers/promises';
import { clockMs } from './fleet/fleet.ts';
import { firstAnswer } from './lib/edge-probe.ts';
import { type FleetProcess, startFleetProcess } from './lib/fleet-process.ts';
import { besideFloor, type Floor, startFloor } from './lib/floor.ts';
import { type NftMonitor, startNftMonitor } from './lib/nft-monitor.ts';
import { type Stack, startStack } from './lib/stack.ts';
import { medianInterval, percentile, round2 } from './lib/stats.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'API request to enforcement at a real edge, at 1,000 simulated nodes and in the kernel';
export const needs = ['nft'];

/**
 * Pause between two bans: a thousand nodes report each ban back, and one ban at a time means that the reports of the one
 * before are in. The burst measures what happens without pauses.
 */
const PAUSE_MS = 500;
/** After the floor, which nobody reports back. */
const FLOOR_PAUSE_MS = 100;
const P50_MS = 50;
const P99_MS = 250;

interface Run {
  stack: Stack;
  fleet: FleetProcess;
  monitor: NftMonitor;
}

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const nodes = quick ? 100 : 1000;
  const bans = quick ? 20 : 200;
  const burst = quick ? 20 : 100;
  const stack = await startStack('ban-propagation', { kernel: true });
  const monitor = await startNftMonitor();
  let fleet: FleetProcess | null = null;
  let floor: Floor | null = null;
  try {
    const begun = clockMs();
    fleet = await startFleetProcess(stack, nodes);
    log(`${nodes} simulated nodes enrolled and connected in ${Math.round(clockMs() - begun)} ms`);
    const at: Run = { stack, fleet, monitor };
    const api: number[] = [];
    const edge: number[] = [];
    const kernel: number[] = [];
    const nodeTimes: number[] = [];
    const floorTimes: number[] = [];
    for (let index = 0; index < bans; index++) {
      const times = await oneBan(at, `198.51.100.${index + 1}`);
      api.push(times.api);
      edge.push(times.edge);
      kernel.push(times.kernel);
      nodeTimes.push(...times.fleet);
      if ((index + 1) % 50 === 0) log(`${index + 1} bans`);
      await sleep(PAUSE_MS);
      floor ??= await startFloor(stack, { feed: 'bans', streams: nodes });
      floorTimes.push(...(await floor.push()));
      await sleep(FLOOR_PAUSE_MS);
    }
    const burstTimes = await banBurst(at, burst, log);
    const parts = { edge, fleet: nodeTimes, kernel };
    const beside = besideFloor(floorTimes, edge, nodeTimes);
    const figures: Record<string, unknown> = {
      nodes,
      bans,
      api: { p50Ms: round2(percentile(api, 50)), p99Ms: round2(percentile(api, 99)) },
      burst: burstTimes,
      ...beside.figures,
    };
    const aims = [...beside.aims];
    for (const [name, sample] of Object.entries(parts)) {
      const p50 = percentile(sample, 50);
      const p99 = percentile(sample, 99);
      const interval = sample.length <= 1000 ? medianInterval(sample) : { low: p50, high: p50 };
      figures[name] = {
        p50Ms: round2(p50),
        p50Interval: [round2(interval.low), round2(interval.high)],
        p99Ms: round2(p99),
        maxMs: round2(Math.max(...sample.slice(0, 100_000))),
      };
      aims.push({ aim: `${name}: p50 ≤ ${P50_MS} ms`, reached: interval.high <= P50_MS });
      aims.push({ aim: `${name}: p99 ≤ ${P99_MS} ms`, reached: p99 <= P99_MS });
    }
    return { figures, aims, programs: { nft: ['nft', '--version'], redis: ['redis-server', '--version'] } };
  } finally {
    floor?.stop();
    fleet?.stop();
    monitor.stop();
    await stack.stop();
  }
}

async function oneBan({ stack, fleet, monitor }: Run, address: string) {
  const { facts } = stack;
  const visitor = { edge: facts.edge.http, host: facts.site.host, headers: { [facts.clientIpHeader]: address } };
  const before = clockMs();
  const banned = postBan(stack, address);
  const [edge, { sequence, answeredAt }] = await Promise.all([
    firstAnswer(visitor, (status) => status === 403),
    banned,
  ]);
  const received = await fleet.receivedBan(sequence);
  const kernel = await monitor.added(address);
  return {
    api: answeredAt - before,
    edge: edge - before,
    kernel: kernel - before,
    fleet: received.map((time) => time - before),
  };
}

async function banBurst({ stack, fleet, monitor }: Run, count: number, log: (line: string) => void) {
  const addresses = Array.from({ length: count }, (_, index) => `203.0.113.${index + 1}`);
  const before = clockMs();
  const posted = await Promise.all(addresses.map((address) => postBan(stack, address)));
  const last = posted.reduce((a, b) => (BigInt(a.sequence) > BigInt(b.sequence) ? a : b)).sequence;
  const received = await fleet.receivedBan(last);
  const kernel = await Promise.all(addresses.map((address) => monitor.added(address)));
  log(`burst of ${count} sent and enforced`);
  return {
    bans: count,
    apiMs: round2(Math.max(...posted.map(({ answeredAt }) => answeredAt)) - before),
    allNodesMs: round2(Math.max(...received) - before),
    kernelMs: round2(Math.max(...kernel) - before),
  };
}

async function postBan(stack: Stack, cidr: string): Promise<{ sequence: string; answeredAt: number }> {
  const answer = await stack.client.request(
    'POST',
    '/api/v1/bans',
    { scope: 'platform', cidr, reason: 'attack', durationSeconds: 3600 },
    {
      'x-api-key': stack.facts.accessKey,
    },
  );
  const change = /^ban=\d+:(\d+)$/.exec(answer.headers.get('x-svc-change') ?? '');
  if (!change) throw new Error(`POST /bans answered ${answer.status} ${JSON.stringify(answer.body)}`);
  return { sequence: change[1]!, answeredAt: clockMs() };
}
