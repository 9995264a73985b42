// What bodies of 128 KiB cost that are made to be expensive, at paranoia 1: inspections alone, without a network.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { caddySources, GO_TEST_TAGS } from '../bin/lib/caddy.ts';
import { median, round2 } from './lib/stats.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'processor time of inspecting hostile bodies of 128 KiB (Go benchmark)';

const AIM_MS = 100;
const BENCHMARK = 'BenchmarkHostileBody';

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const rounds = quick ? 1 : 5;
  const folder = mkdtempSync(path.join(os.tmpdir(), 'bench-waf-hostile-'));
  const samples = new Map<string, number[]>();
  try {
    const program = path.join(folder, 'waf.test');
    const env = { ...process.env, CGO_ENABLED: '0' };
    log('building the benchmark');
    const build = ['test', ...GO_TEST_TAGS, '-trimpath', '-c', '-o', program];
    execFileSync('go', build, { cwd: path.join(caddySources, 'features/waf'), env, timeout: 600_000 });
    const words = ['-test.run', '^$', '-test.bench', `^${BENCHMARK}$`, '-test.cpu', '1'];
    words.push('-test.benchtime', quick ? '1x' : '5x');
    for (let round = 0; round < rounds; round++) {
      const output = execFileSync(program, words, { encoding: 'utf8', timeout: 600_000 });
      for (const [, name, line] of output.matchAll(new RegExp(`^${BENCHMARK}/(\\S+)\\s+\\d+\\s+(.*)$`, 'gm'))) {
        const ms = Number(/([\d.]+) cpu-ms\/op/.exec(line!)?.[1]);
        if (Number.isNaN(ms)) throw new Error(`no figure in:\n${line}`);
        samples.set(name!, [...(samples.get(name!) ?? []), ms]);
      }
      log(`round ${round + 1} of ${rounds}`);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  if (samples.size === 0) throw new Error('the benchmark gives no figures');
  const costs = [...samples].map(([name, each]) => ({ name: name.replaceAll('_', ' '), ms: median(each) }));
  costs.sort((a, b) => b.ms - a.ms);
  return {
    figures: Object.fromEntries(costs.map(({ name, ms }) => [name, round2(ms)])),
    aims: [{ aim: `each body ≤ ${AIM_MS} ms of processor time (median of rounds)`, reached: costs[0]!.ms <= AIM_MS }],
    notes: [`${costs.filter(({ ms }) => ms > AIM_MS).length} of ${costs.length} bodies cost more`],
    programs: { go: ['go', 'version'] },
  };
}
