// `npm run fuzz`: runs every fuzz target of the Go modules for a while, one after the other. What a target fails with is
// kept by Go under testdata/fuzz beside it, where every run of the tests tries it again.
import { spawn } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { findGo, GO_MODULES } from './lib/caddy.ts';
import { run } from './lib/commands.ts';
import { Refusal, report, say } from './lib/progress.ts';
import { root } from './lib/root.ts';

const HELP = `Usage: npm run fuzz [-- --seconds N] [--keep N] [NAME]...

Runs the fuzz targets whose name contains NAME (default: all), each for --seconds (60). The exit code is 1 if one fails.
Commit the new files below testdata/fuzz.

  --seconds N   seconds per target
  --keep N      also keeps the N smallest inputs that reached new code, as seeds below testdata/fuzz
  --list        lists the targets without running them`;

interface Target {
  module: string;
  /** Folder of the package. */
  folder: string;
  name: string;
}

function targets(): Target[] {
  return GO_MODULES.flatMap((module) =>
    (readdirSync(module, { recursive: true }) as string[])
      .filter((file) => file.endsWith('_test.go'))
      .sort()
      .flatMap((file) => {
        const text = readFileSync(join(module, file), 'utf8');
        return [...text.matchAll(/^func (Fuzz\w+)\(/gm)].map(([, name]) => ({
          module,
          folder: dirname(join(module, file)),
          name: name!,
        }));
      }),
  );
}

/** Runs a target with its output on the terminal; true when it found nothing. */
function fuzz(go: string, { folder, name }: Target, seconds: number): Promise<boolean> {
  const words = ['test', '.', '-run', '^$', '-fuzz', `^${name}$`, '-fuzztime', `${seconds}s`];
  const child = spawn(go, words, { cwd: folder, env: { ...process.env, CGO_ENABLED: '0' }, stdio: 'inherit' });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => resolve(code === 0));
  });
}

/** Copies the smallest inputs that Go remembers of a target to its seeds. */
async function keep(go: string, { folder, name }: Target, most: number): Promise<void> {
  const { stdout } = await run(go, ['list', '-f', '{{.ImportPath}}'], { cwd: folder });
  const cache = (await run(go, ['env', 'GOCACHE'], { cwd: folder })).stdout.trim();
  const found = join(cache, 'fuzz', stdout.trim(), name);
  if (!existsSync(found)) return;
  const seeds = join(folder, 'testdata', 'fuzz', name);
  mkdirSync(seeds, { recursive: true });
  const size = (file: string) => statSync(join(found, file)).size;
  const smallest = readdirSync(found).sort((a, b) => size(a) - size(b) || (a < b ? -1 : 1));
  for (const file of smallest.slice(0, most)) copyFileSync(join(found, file), join(seeds, file));
}

function count(text: string, least: number, option: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < least) throw new Refusal(`${option} takes a number of at least ${least}`);
  return value;
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string', default: '60' },
    keep: { type: 'string', default: '0' },
    list: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
});

async function main(): Promise<void> {
  const seconds = count(values.seconds, 1, '--seconds');
  const most = count(values.keep, 0, '--keep');
  const wanted = targets().filter(
    ({ name }) => positionals.length === 0 || positionals.some((part) => name.includes(part)),
  );
  if (wanted.length === 0) throw new Refusal('no fuzz target has this name; see --list');
  const placed = ({ folder, name }: Target) => `${relative(root, folder)} ${name}`;
  if (values.list) {
    for (const target of wanted) console.log(placed(target));
    return;
  }
  const found = await findGo();
  if ('problem' in found) throw new Refusal(found.problem);
  const failed: Target[] = [];
  for (const target of wanted) {
    say(`${placed(target)}:`);
    if (!(await fuzz(found.go, target, seconds))) failed.push(target);
    if (most > 0) await keep(found.go, target, most);
  }
  say(`${wanted.length - failed.length} passed, ${failed.length} failed`);
  for (const target of failed) say(`  FAILED  ${placed(target)}`);
  if (failed.length > 0) process.exitCode = 1;
}

try {
  if (values.help) say(HELP);
  else await main();
} catch (error) {
  report(error);
}
