// `npm run bench -- NAME [--json FILE] [--quick]`: runs one benchmark and prints its figures with the machine.
// A benchmark is a file bench/<name>.bench.ts that exports `title` and `run`. The name `attack` is that of the attack kit,
// which has options of its own.
import { readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { report as printError } from '../bin/lib/progress.ts';
import { ensureBenchPrograms } from '../bin/lib/test-programs.ts';
import { describeMachine, type Machine } from './lib/machine.ts';

export interface BenchContext {
  /** Fewer rounds, to see that it works; its figures are not to be quoted. */
  quick: boolean;
  log(line: string): void;
}

export interface BenchResult {
  figures: Record<string, unknown>;
  /** What is aimed at, and whether the figures reach it. */
  aims: { aim: string; reached: boolean }[];
  /** Programs whose versions belong beside the figures. */
  programs?: Record<string, readonly string[]>;
  notes?: string[];
}

export interface Bench {
  title: string;
  /** Programs of the machine that it drives; those that are missing are installed. */
  needs?: readonly string[];
  run(context: BenchContext): Promise<BenchResult>;
}

const SUFFIX = '.bench.ts';
const here = import.meta.dirname;
const names = readdirSync(here)
  .filter((file) => file.endsWith(SUFFIX))
  .map((file) => file.slice(0, -SUFFIX.length))
  .sort();

if (process.argv[2] === 'attack') {
  const kit = await import('./attack/run.ts');
  process.exit(await kit.run(process.argv.slice(3)));
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: 'string' },
    quick: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h' },
  },
});
const name = positionals[0];
if (values.help || name === undefined || !names.includes(name)) {
  console.log(
    `Usage: npm run bench -- NAME [--json FILE] [--quick]\n\nBenchmarks: ${names.join(', ')}\nAttack kit: npm run bench -- attack --help`,
  );
  process.exit(values.help ? 0 : 2);
}

const bench = (await import(path.join(here, `${name}${SUFFIX}`))) as Bench;
console.log(`${name}: ${bench.title}${values.quick ? ' (quick: not to be quoted)' : ''}`);
let result: BenchResult;
try {
  await ensureBenchPrograms(bench.needs ?? []);
  result = await bench.run({ quick: values.quick, log: (line) => console.log(`  ${line}`) });
} catch (error) {
  printError(error);
  process.exit(1);
}
report(name, result, describeMachine(result.programs));
process.exit(0);

function report(benchName: string, result: BenchResult, machine: Machine): void {
  console.log(JSON.stringify(result.figures, null, 2));
  for (const note of result.notes ?? []) console.log(`note: ${note}`);
  for (const { aim, reached } of result.aims) console.log(`${reached ? 'reached' : 'MISSED '}  ${aim}`);
  const versions = Object.entries(machine.versions).map(([program, version]) => `${program} ${version}`);
  console.log(
    `machine: ${machine.cpu}, ${machine.cores} cores, ${machine.memoryGiB} GiB, ${machine.kernel}, node ${machine.node}` +
      `${versions.length > 0 ? `, ${versions.join(', ')}` : ''}, commit ${machine.commit}`,
  );
  if (values.json) writeFileSync(values.json, `${JSON.stringify({ name: benchName, ...result, machine }, null, 2)}\n`);
}
