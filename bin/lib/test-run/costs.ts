// What each job took when somebody measured it on a quiet machine: test/costs.json, which the schedule is made from. A
// wrong figure makes a run longer, never wrong.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../root.ts';
import type { Cost, Result, Suite } from './job.ts';

const file = join(root, 'test', 'costs.json');

/** [seconds from start to end, seconds of processors]. */
type Stored = Record<string, [number, number]>;

/** Of a job that nobody measured yet. */
const UNKNOWN: Record<Suite, Cost> = {
  check: { seconds: 10, cores: 1 },
  go: { seconds: 120, cores: 2 },
  race: { seconds: 600, cores: 2 },
  long: { seconds: 300, cores: 1 },
  unit: { seconds: 60, cores: 1 },
  repo: { seconds: 5, cores: 1 },
  integration: { seconds: 10, cores: 0.9 },
  e2e: { seconds: 60, cores: 0.6 },
};

const stored: Stored = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Stored) : {};

export function costOf(suite: Suite, name: string): Cost {
  const known = stored[name];
  if (!known) return UNKNOWN[suite];
  const [seconds, cpuSeconds] = known;
  return { seconds, cores: cpuSeconds / Math.max(seconds, 0.1) };
}

/**
 * Writes what a run measured over what is known. Files that are gone leave the list; a job that failed keeps its old
 * figures, because it may have ended early.
 */
export function keepCosts(results: ReadonlyMap<string, Result>): void {
  const isThere = (name: string) => !name.startsWith('test/') || existsSync(join(root, name));
  const kept: Stored = Object.fromEntries(Object.entries(stored).filter(([name]) => isThere(name)));
  for (const [name, { failed, seconds, cpuSeconds = seconds }] of results)
    if (failed === 0) kept[name] = [Number(seconds.toFixed(1)), Number(cpuSeconds.toFixed(1))];
  const lines = Object.entries(kept)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, [seconds, cpuSeconds]]) => `  ${JSON.stringify(name)}: [${seconds}, ${cpuSeconds}]`);
  writeFileSync(file, `{\n${lines.join(',\n')}\n}\n`);
}
