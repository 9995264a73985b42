// What a valid pass costs a request: network and User-Agent, the cookie among others, the signature.
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { medianInterval, round2 } from './lib/stats.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'a request with a valid pass (Go benchmark)';

const AIM_NS = 2000;

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const rounds = quick ? 3 : 9;
  const words = ['test', './svcchallenge', '-run', '^$', '-bench', '^BenchmarkPassCheck$', '-count', String(rounds)];
  const output = execFileSync('go', [...words, '-benchtime', quick ? '300000x' : '1000000x'], {
    cwd: path.join(import.meta.dirname, '../agents/caddy'),
    encoding: 'utf8',
    timeout: 600_000,
  });
  const figure = (unit: string) =>
    medianInterval([...output.matchAll(new RegExp(` ([\\d.]+) ${unit}`, 'g'))].map((match) => Number(match[1])));
  const cpu = figure('cpu-ns/op');
  const wall = figure('ns/op');
  const allocs = figure('allocs/op');
  if (!(cpu.median > 0)) throw new Error(`no figures in:\n${output}`);
  log(`${rounds} rounds`);
  // A shared machine takes the core away in between: the subject is judged by its processor time, the clock is shown.
  return {
    figures: {
      ns: round2(cpu.median),
      nsInterval: [round2(cpu.low), round2(cpu.high)],
      wallNs: [round2(wall.low), round2(wall.median), round2(wall.high)],
      allocs: allocs.median,
    },
    aims: [{ aim: `≤ ${AIM_NS} ns of processor time (upper end of the interval)`, reached: cpu.high <= AIM_NS }],
    programs: { go: ['go', 'version'] },
  };
}
