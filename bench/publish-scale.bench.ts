// One site changes in clusters of 100, 10,000 and 100,000 sites: what it costs the action in the database, the actor
// that encodes the difference, and the wire. The stores run without fsync, as in tests: what is compared is the work.

import { createCluster } from '../models/clusters/create-cluster.ts';
import { readConfigHead } from '../models/config/config-history.ts';
import { configSource } from '../pipeline/config-source.ts';
import { Track } from '../proto/gen/svc/node/v1/config_pb.js';
import { systemCall } from '../runtime/call.ts';
import { FanoutWriter } from '../runtime/fanout-stream.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { fanoutStream } from '../runtime/stream-names.ts';
import { write } from '../runtime/write.ts';
import { createSite } from '../services/sites/create-site.ts';
import { updateSite } from '../services/sites/update-site.ts';
import { startBenchRuntime } from './lib/bench-runtime.ts';
import { copySites } from './lib/copy-sites.ts';
import { median, medianInterval, percentile, round2, seeded } from './lib/stats.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'one site changes among 100, 10,000 and 100,000: database, actor, bytes';

const MAX_RATIO = 1.2;

interface Sample {
  sites: number;
  clusterId: string;
  siteIds: string[];
  databaseMs: number[];
  actorMs: number[];
  bytes: number[];
  cpuMs: number[];
}

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const sizes = quick ? [100, 1000, 5000] : [100, 10_000, 100_000];
  const rounds = quick ? 3 : 11;
  const perRound = quick ? 10 : 40;
  const { runtime, stop } = await startBenchRuntime('publish-scale');
  try {
    const samples: Sample[] = [];
    for (const sites of sizes) {
      const started = performance.now();
      samples.push(await fillCluster(runtime, sites));
      log(`${sites} sites published in ${Math.round((performance.now() - started) / 1000)} s`);
    }
    await runtime.pools.api.raw('vacuum analyze');
    const random = seeded(7);
    // The first round warms plans and caches up and is not counted.
    for (let round = 0; round <= rounds; round++) {
      for (const sample of samples) await changeSites(runtime, sample, perRound, random, round > 0);
    }
    return report(samples, rounds * perRound);
  } finally {
    await stop();
  }
}

/** A cluster with that many sites, copies of one that the action made; every one of them published. */
async function fillCluster(runtime: Runtime, sites: number): Promise<Sample> {
  const call = systemCall('bench');
  const name = `bench-${sites}`;
  const clusterId = await write(runtime, call, {}, (tx) => createCluster(tx, runtime.sealer, { name }));
  const { site } = await createSite(
    runtime,
    {
      clusterId,
      name: `first of ${sites}`,
      domains: [`first.${name}.example`],
      origins: [{ address: 'origin.example.net', port: 80 }],
    } as Parameters<typeof createSite>[1],
    call,
  );
  const siteIds = [site.id, ...(await copySites(runtime, clusterId, site.id, sites - 1))];
  return { sites, clusterId, siteIds, databaseMs: [], actorMs: [], bytes: [], cpuMs: [] };
}

async function changeSites(
  runtime: Runtime,
  sample: Sample,
  count: number,
  random: () => number,
  counted: boolean,
): Promise<void> {
  const { clusterId, siteIds } = sample;
  const source = configSource(runtime, Track.STABLE);
  const writer = new FanoutWriter(runtime);
  for (let index = 0; index < count; index++) {
    const before = (await readConfigHead(runtime.pools.channel, clusterId))!;
    const id = siteIds[Math.floor(random() * siteIds.length)]!;
    const origins = [{ address: 'origin.example.net', port: 1 + Math.floor(random() * 65_000) }];
    const cpu = process.cpuUsage();
    const started = performance.now();
    await updateSite(runtime, { id, origins } as Parameters<typeof updateSite>[1], systemCall('bench'));
    const saved = performance.now();
    const target = (await source.targets([clusterId])).get(clusterId)!;
    const batch = (await source.read(clusterId, before.revision, target))!;
    await writer.append(fanoutStream('', clusterId, 'config', target.epoch), batch);
    const emitted = performance.now();
    const { user, system } = process.cpuUsage(cpu);
    if (!counted) continue;
    sample.databaseMs.push(saved - started);
    sample.actorMs.push(emitted - saved);
    sample.bytes.push(batch.bytes.length);
    sample.cpuMs.push((user + system) / 1000);
  }
}

function report(samples: readonly Sample[], changes: number): BenchResult {
  const totals = samples.map(({ databaseMs, actorMs }) => databaseMs.map((ms, index) => ms + actorMs[index]!));
  const intervals = totals.map(medianInterval);
  const [small, large] = [intervals[0]!, intervals.at(-1)!];
  const ratio = large.median / small.median;
  // The least favourable reading of both intervals.
  const worst = large.high / small.low;
  const bytes = samples.map((sample) => median(sample.bytes));
  const each = (pick: (sample: Sample) => number[]) => samples.map((sample) => round2(median(pick(sample))));
  return {
    figures: {
      changes,
      sites: samples.map(({ sites }) => sites),
      p50Ms: intervals.map((interval) => round2(interval.median)),
      p50Interval: intervals.map(({ low, high }) => [round2(low), round2(high)]),
      p99Ms: totals.map((total) => round2(percentile(total, 99))),
      databaseP50Ms: each((sample) => sample.databaseMs),
      actorP50Ms: each((sample) => sample.actorMs),
      consoleCpuMs: each((sample) => sample.cpuMs),
      bytes,
      ratio: round2(ratio),
      ratioInterval: [round2(large.low / small.high), round2(worst)],
    },
    aims: [
      { aim: `largest : smallest ≤ ${MAX_RATIO} (upper end of the interval)`, reached: worst <= MAX_RATIO },
      { aim: 'the same bytes whatever the size', reached: Math.max(...bytes) <= Math.min(...bytes) * 1.05 },
    ],
    notes: ['the edge is measured by publish-propagation; fsync is off, so absolute times are those of the work'],
  };
}
