// What a valid pass costs a request: network and User-Agent, the cookie among others, the signature. The old edge's check
// runs between, in turns.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { caddySources } from '../bin/lib/caddy.ts';
import { beside, besideFigures, judge, threeOf } from './lib/beside.ts';
import { OLD_COMMIT, oldSources } from './lib/old-edge.ts';
import { median, medianInterval, round2 } from './lib/stats.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'a request with a valid pass beside the old edge (Go benchmark)';

const AIM_NS = 2000;
const PACKAGES = { old: 'svcchallenge', present: 'features/challenge' };

interface Figures {
  cpu: number[];
  wall: number[];
  allocs: number[];
}

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const rounds = quick ? 3 : 15;
  const times = quick ? '100000x' : '300000x';
  const folder = mkdtempSync(path.join(os.tmpdir(), 'bench-pass-'));
  try {
    const modules = { old: oldSources(), present: caddySources };
    const tests = { old: path.join(folder, 'old.test'), present: path.join(folder, 'present.test') };
    for (const name of ['old', 'present'] as const) {
      log(`building the benchmark of the ${name} edge`);
      execFileSync('go', ['test', '-trimpath', '-c', '-o', tests[name], `./${PACKAGES[name]}`], {
        cwd: modules[name],
        env: { ...process.env, CGO_ENABLED: '0' },
        timeout: 600_000,
      });
    }
    const figures: Record<'old' | 'present' | 'oldAgain', Figures> = { old: none(), present: none(), oldAgain: none() };
    const subjects = [
      ['old', 'old'],
      ['present', 'present'],
      ['oldAgain', 'old'],
    ] as const;
    for (let round = 0; round < rounds; round++) {
      for (const [name, side] of round % 2 === 0 ? subjects : subjects.toReversed()) {
        measure(tests[side], path.join(modules[side], PACKAGES[side]), times, figures[name]);
      }
    }
    log(`${rounds} rounds`);
    const cpu = medianInterval(figures.present.cpu);
    // A shared machine takes the core away in between: the subject is judged by its processor time, the clock is shown.
    const compared = beside(
      { old: figures.old.cpu, oldAgain: figures.oldAgain.cpu, present: figures.present.cpu },
      'less',
    );
    const judged = judge('processor time of a check', compared);
    return {
      figures: {
        ns: round2(cpu.median),
        nsInterval: [round2(cpu.low), round2(cpu.high)],
        wallNs: threeOf(medianInterval(figures.present.wall)),
        allocs: median(figures.present.allocs),
        oldCommit: OLD_COMMIT,
        oldNs: round2(median([...figures.old.cpu, ...figures.oldAgain.cpu])),
        oldAllocs: median(figures.old.allocs),
        processorTime: besideFigures(compared),
      },
      aims: [
        { aim: `≤ ${AIM_NS} ns of processor time (upper end of the interval)`, reached: cpu.high <= AIM_NS },
        ...judged.aims,
      ],
      notes: judged.notes,
      programs: { go: ['go', 'version'] },
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const none = (): Figures => ({ cpu: [], wall: [], allocs: [] });

/** Runs the benchmark once. */
function measure(test: string, cwd: string, times: string, figures: Figures): void {
  const words = ['-test.run', '^$', '-test.bench', '^BenchmarkPassCheck$', '-test.benchtime', times];
  const output = execFileSync(test, words, { cwd, encoding: 'utf8', timeout: 120_000 });
  const figure = (unit: string) => Number(new RegExp(` ([\\d.]+) ${unit}`).exec(output)?.[1]);
  const cpu = figure('cpu-ns/op');
  if (!(cpu > 0)) throw new Error(`no figures in:\n${output}`);
  figures.cpu.push(cpu);
  figures.wall.push(figure('ns/op'));
  figures.allocs.push(figure('allocs/op'));
}
