// What a change can break, for the loop of somebody at work: from the files that differ from main to the jobs that are
// worth their time. Services find each other by name at run time, so that imports lead from a file of a slice to its unit
// tests only: its other tests are those that are named after it or call it.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { caddySources, findGo, GO_BUILD_FLAGS } from '../caddy.ts';
import type { CheckStep } from '../check-steps.ts';
import { run } from '../commands.ts';
import { root } from '../root.ts';
import type { Imports } from './import-graph.ts';
import { reaching } from './import-graph.ts';
import type { Cost } from './job.ts';

/** Nearest first. */
export interface Candidate {
  file: string;
  /** 0: the file itself or what it imports; 1: named after the slice; 2: calls it. */
  nearness: number;
}

/** Folders whose names the tests of a slice, a page or a table bear. */
const SLICE = /^(?:services|console\/src\/features|contract\/resources|test\/unit\/services)\/([\w-]+?)(?:\/|\.ts$)/;
const MODEL = /^models\/(?!gen\/)([\w-]+)\/[\w.-]+\.ts$/;
const NO_SLICE = new Set(['gen', 'api-gateway']);
/** Beyond so many imports a change is seldom felt; all tests of everything would be. */
const FAR = 6;

async function git(...args: string[]): Promise<string[]> {
  const { stdout } = await run('git', args, { cwd: root, timeout: 30_000, maxBuffer: 1 << 24 });
  return stdout.split('\n').filter((line) => line !== '');
}

/** Paths that differ from main (or, on main itself, from its last commit but one), with what is not committed. */
export async function changedFiles(): Promise<string[]> {
  const [here] = await git('rev-parse', 'HEAD');
  const [main] = await git('rev-parse', '--verify', '--quiet', 'main').catch(() => []);
  const base = main && main !== here ? (await git('merge-base', main, 'HEAD'))[0]! : 'HEAD';
  const lists = [await git('diff', '--name-only', base), await git('ls-files', '--others', '--exclude-standard')];
  return [...new Set(lists.flat())].sort();
}

/** Names of the slices, pages and tables that the files belong to: sites, ip-lists. */
export function slicesOf(files: readonly string[]): string[] {
  const names = files.flatMap((file) => (SLICE.exec(file) ?? MODEL.exec(file))?.[1] ?? []);
  return [...new Set(names)].filter((name) => !NO_SLICE.has(name)).sort();
}

/** Test files that the change can break, the nearest first. `sources` gives the text of a test file. */
export function candidates(
  changed: readonly string[],
  imports: Imports,
  tests: readonly string[],
  sources: (file: string) => string = (file) => readFileSync(join(root, file), 'utf8'),
): Candidate[] {
  const reached = reaching(imports, changed);
  const slices = slicesOf(changed);
  const words = slices.map((name) => name.replace(/ies$/, 'y').replace(/s$/, ''));
  const found = tests.flatMap((file): Candidate[] => {
    const steps = reached.get(file);
    if (steps !== undefined && steps <= FAR && (steps <= 1 || file.startsWith('test/unit/')))
      return [{ file, nearness: 0 }];
    if (file.startsWith('test/unit/')) return [];
    const name = file.slice(file.lastIndexOf('/') + 1);
    if (words.some((word) => name.includes(word))) return [{ file, nearness: 1 }];
    const source = slices.length > 0 ? sources(file) : '';
    return slices.some((slice) => calls(source, slice)) ? [{ file, nearness: 2 }] : [];
  });
  return found.sort((a, b) => a.nearness - b.nearness);
}

/** Whether a test calls the slice: over its path, or by the name of one of its procedures. */
function calls(source: string, slice: string): boolean {
  const procedures = slice.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
  return source.includes(`'/${slice}`) || source.includes(`\`/${slice}`) || source.includes(`'${procedures}.`);
}

/** As many of the items, in their order, as fit into so many seconds of all cores; what does not fit is left out. */
export function fitting<T>(
  items: readonly T[],
  costOf: (item: T) => Cost,
  seconds: number,
  cores: number,
): { taken: T[]; left: T[] } {
  const taken: T[] = [];
  const left: T[] = [];
  let used = 0;
  for (const item of items) {
    const cost = costOf(item);
    const share = (cost.seconds * Math.min(cost.cores, cores)) / cores;
    // A file that by itself takes longer than all may would be the loop.
    if (cost.seconds > seconds || used + share > seconds) left.push(item);
    else {
      taken.push(item);
      used += share;
    }
  }
  return { taken, left };
}

const NEEDED: Readonly<Record<string, RegExp>> = {
  'types of the client': /^(client|contract)\//,
  'types of the Web UI': /^(console|contract)\//,
  'protobuf lint': /^proto\/|^buf/,
  'protobuf wire compatibility': /^proto\/|^buf/,
  'generated code': /^(contract|proto|services|models|client)\/|^bin\/lib\/generat/,
  gofmt: /\.go$/,
};

/** Whether a step of the check can see the change; packages of Go are vetted with their tests. */
export function seesChange({ name }: CheckStep, changed: readonly string[]): boolean {
  if (name === 'go vet') return false;
  const needed = NEEDED[name];
  return !needed || changed.some((file) => needed.test(file));
}

/** Arguments of the `go test` of packages with the change and of those that import them; none without a change in Go. */
export async function changedPackages(changed: readonly string[]): Promise<string[]> {
  const folders = new Set(
    changed.filter((file) => /^agents\/caddy\/.*\.(go|json|html)$/.test(file)).map((file) => join(root, file, '..')),
  );
  const found = await findGo();
  if (folders.size === 0 || 'problem' in found) return [];
  const format = '{{.Dir}}|{{.ImportPath}}|{{join .Deps ","}}';
  const { stdout } = await run(found.go, ['list', ...GO_BUILD_FLAGS, '-f', format, './...'], {
    cwd: caddySources,
    timeout: 120_000,
    maxBuffer: 1 << 26,
  });
  const packages = stdout
    .trim()
    .split('\n')
    .map((line) => {
      const [folder = '', path = '', needs = ''] = line.split('|');
      return { folder, path, needs: new Set(needs.split(',')) };
    });
  const changedPaths = packages.filter(({ folder }) => folders.has(folder)).map(({ path }) => path);
  return packages
    .filter(({ path, needs }) => changedPaths.includes(path) || changedPaths.some((each) => needs.has(each)))
    .map(({ path }) => path);
}
