// The time that each job took, and how much of it was not spent computing: with other jobs beside it, or waiting.
import { writeFileSync } from 'node:fs';
import type { Result } from './job.ts';
import { logFile } from './measured.ts';

/** Lines of a table, the job that computed longest first; `stores` is what the shared servers took. */
export function timesTable(results: ReadonlyMap<string, Result>, storesSeconds: number | undefined): string[] {
  const rows = [...results].toSorted(([, a], [, b]) => (b.cpuSeconds ?? b.seconds) - (a.cpuSeconds ?? a.seconds));
  const number = (value: number | undefined) => (value === undefined ? '-' : value.toFixed(1)).padStart(10);
  const line = (name: string, seconds: number | undefined, cpu: number | undefined) => {
    const other = seconds === undefined || cpu === undefined ? undefined : Math.max(seconds - cpu, 0);
    return `${number(seconds)}${number(cpu)}${number(other)}  ${name}`;
  };
  const sum = (of: (result: Result) => number | undefined) =>
    rows.reduce((total, [, result]) => total + (of(result) ?? 0), 0);
  return [
    '   seconds computing   waiting',
    ...rows.map(([name, { seconds, cpuSeconds }]) => line(name, seconds, cpuSeconds)),
    ...(storesSeconds === undefined ? [] : [line('PostgreSQL and Redis of all files', undefined, storesSeconds)]),
    line(
      'all',
      sum(({ seconds }) => seconds),
      sum(({ cpuSeconds }) => cpuSeconds) + (storesSeconds ?? 0),
    ),
  ];
}

/** Keeps the table in .cache/test-logs/times.log; answers the path. */
export function keepTimes(lines: readonly string[]): string {
  const file = logFile('times');
  writeFileSync(file, `${lines.join('\n')}\n`);
  return file;
}
