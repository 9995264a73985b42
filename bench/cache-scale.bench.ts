// A cache of a million objects: memory of the index, restart after a kill, and the rate of eviction.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { medianInterval, round2 } from './lib/stats.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'a cache of a million objects (Go benchmark)';

const AIM_BYTES = 96;
const AIM_RESTART_SECONDS = 5;
const AIM_EVICTION_MICROSECONDS = 100;
const AIM_STORE_MICROSECONDS = 60;

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const rounds = quick ? 1 : 5;
  const objects = quick ? 100_000 : 1_000_000;
  const folder = mkdtempSync(path.join(os.tmpdir(), 'bench-cache-scale-'));
  const samples: Map<string, number>[] = [];
  try {
    const program = path.join(folder, 'store.test');
    const cwd = path.join(import.meta.dirname, '../agents/caddy/features/cache/store');
    const env = { ...process.env, CGO_ENABLED: '0', TMPDIR: folder, SVC_CACHE_SCALE_OBJECTS: String(objects) };
    log('building the benchmark');
    execFileSync('go', ['test', '-c', '-o', program], { cwd, env, timeout: 600_000 });
    const flags = ['-test.run', '^$', '-test.bench', '^BenchmarkScale$', '-test.benchtime', '1x'];
    for (let round = 0; round < rounds; round++) {
      const output = execFileSync(program, flags, { cwd, env, encoding: 'utf8', timeout: 600_000 });
      const line = /^BenchmarkScale\S*\s+\d+\s+(.*)$/m.exec(output);
      if (line === null) throw new Error(`no figures in:\n${output}`);
      samples.push(new Map([...line[1]!.matchAll(/([\d.e+]+) (\S+)/g)].map((match) => [match[2]!, Number(match[1])])));
      log(`round ${round + 1} of ${rounds}`);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  const of = (name: string) => medianInterval(samples.map((sample) => sample.get(name)!));
  const interval = (name: string) => {
    const { low, median, high } = of(name);
    return [round2(low), round2(median), round2(high)];
  };
  // Seconds for a million, whatever the number of objects.
  const perMillion = (name: string) => (of(name).high * 1_000_000) / objects;
  return {
    figures: {
      objects,
      bytesPerObject: interval('bytes/object'),
      restartSeconds: interval('restart-s'),
      restartCpuSeconds: interval('restart-cpu-s'),
      evictionsPerSecond: interval('evictions/s'),
      evictionCpuMicroseconds: interval('evict-cpu-µs'),
      storeCpuMicroseconds: interval('store-cpu-µs'),
    },
    // A shared machine takes the core away in between: processor time is judged, the clock is shown.
    aims: [
      { aim: `≤ ${AIM_BYTES} bytes of memory for an object`, reached: of('bytes/object').high <= AIM_BYTES },
      {
        aim: `restart in ≤ ${AIM_RESTART_SECONDS} s of processor time for a million objects`,
        reached: perMillion('restart-cpu-s') <= AIM_RESTART_SECONDS,
      },
      {
        aim: `≤ ${AIM_EVICTION_MICROSECONDS} µs of processor time for an eviction`,
        reached: of('evict-cpu-µs').high <= AIM_EVICTION_MICROSECONDS,
      },
      {
        aim: `≤ ${AIM_STORE_MICROSECONDS} µs of processor time to store 1 KiB`,
        reached: of('store-cpu-µs').high <= AIM_STORE_MICROSECONDS,
      },
    ],
    notes: [
      'The index of the restart has no files; eviction deletes files of 1 KiB, one for each 20 objects of the index.',
    ],
    programs: { go: ['go', 'version'] },
  };
}
