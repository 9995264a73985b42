// A ban lookup at 100,000 mixed bans: 60 % IPv4 addresses, 30 % IPv6 /64, 10 % IPv4 /24. Beside it, in the same rounds, the
// same clients in one trie of the library that the table stands on.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { medianInterval, round2 } from './lib/stats.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'one lookup in a table of 100,000 bans (Go benchmark)';

const AIM_NS = 50;
const AIM_MIB = 32;

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const rounds = quick ? 3 : 9;
  const folder = mkdtempSync(path.join(os.tmpdir(), 'bench-ban-lookup-'));
  let output = '';
  try {
    const program = path.join(folder, 'bans.test');
    const cwd = path.join(import.meta.dirname, '../agents/caddy/features/bans');
    execFileSync('go', ['test', '-c', '-o', program], { cwd, timeout: 600_000 });
    const flags = ['-test.run', '^$', '-test.bench', 'BenchmarkLookup100k', '-test.benchtime', '3000000x'];
    for (let round = 0; round < rounds; round++) {
      output += execFileSync(program, flags, { cwd, encoding: 'utf8', timeout: 600_000 });
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  const lines = [...output.matchAll(/^BenchmarkLookup100k([A-Z][a-z]*)?(?:-\d+)?\s+\d+\s+(.*)$/gm)];
  const samplesOf = (variant: string) =>
    lines.filter((match) => (match[1] ?? '') === variant).map((match) => metrics(match[2]!));
  const cpu = (variant: string) =>
    round2(medianInterval(samplesOf(variant).map((each) => each.get('cpu-ns/op')!)).median);
  const samples = samplesOf('');
  if (samples.length === 0) throw new Error(`no figures in:\n${output}`);
  log(`${samples.length} rounds`);
  // A shared machine takes the core away in between: the subject is judged by its processor time, the clock is shown.
  const lookup = medianInterval(samples.map((sample) => sample.get('cpu-ns/op')!));
  const wall = medianInterval(samples.map((sample) => sample.get('ns/op')!));
  const plain = samplesOf('Plain').map((sample) => sample.get('cpu-ns/op')!);
  const ratio = medianInterval(samples.map((sample, round) => sample.get('cpu-ns/op')! / plain[round]!));
  const memory = medianInterval(samples.map((sample) => sample.get('MiB')!));
  return {
    figures: {
      nsPerLookup: round2(lookup.median),
      nsInterval: [round2(lookup.low), round2(lookup.high)],
      wallNs: [round2(wall.low), round2(wall.median), round2(wall.high)],
      // Every client banned; and 65,536 clients in turn, which measures the processor's caches.
      allBannedNs: cpu('Banned'),
      coldNs: cpu('Cold'),
      // One trie of the library alone, and how much longer our lookup takes.
      plainNs: round2(medianInterval(plain).median),
      timesPlain: [round2(ratio.low), round2(ratio.median), round2(ratio.high)],
      MiB: round2(memory.median),
    },
    aims: [
      {
        aim: `≤ ${AIM_NS} ns of processor time per lookup (upper end of the interval)`,
        reached: lookup.high <= AIM_NS,
      },
      { aim: 'no longer than one trie of the library takes (upper end of the interval)', reached: ratio.high <= 1 },
      { aim: `≤ ${AIM_MIB} MiB`, reached: memory.high <= AIM_MIB },
    ],
    programs: { go: ['go', 'version'] },
  };
}

function metrics(line: string): Map<string, number> {
  return new Map([...line.matchAll(/([\d.]+) (\S+)/g)].map((match) => [match[2]!, Number(match[1])]));
}
