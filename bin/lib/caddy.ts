// The edge's Caddy binary, built from agents/caddy and kept under the hash of its sources: the same sources never build
// twice, and a machine without Go runs a binary that is already there.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { findCommand, run } from './commands.ts';
import { type Reporter, reportEdgeBuild } from './edge-build-report.ts';
import { takeLock } from './lock.ts';
import { Refusal, say, step } from './progress.ts';
import { cacheDir, downloadsDir, root } from './root.ts';

const BINARY = 'svc-caddy';
/** Folder of the Go module. */
export const caddySources = join(root, 'agents', 'caddy');
/** Tests, documents, tools and hidden files; everything else may be compiled or embedded. */
const NOT_IN_BINARY = /_test[.]go$|[.](md|sh|yaml)$|(^|\/)(bin|testdata|edgetest)(\/|$)|(^|\/)[.]/;
const KEPT_BUILDS = 4;
const BUILD_TIMEOUT_MS = 30 * 60_000;

/** The Go modules with code of ours that is tested and checked. */
export const GO_MODULES: readonly string[] = [caddySources, join(root, 'bench', 'attack')];

/** Oldest Go that builds the edge: [major, minor]. */
export const GO_VERSION = [1, 26] as const;

/** Builds, checks and tests that share these share what they compile, too. */
export const GO_BUILD_FLAGS: readonly string[] = ['-trimpath'];

/** Code of Go that tests alone have: `svcdebug` tells what a node tells nobody. */
export const GO_TEST_TAGS: readonly string[] = ['-tags', 'svcdebug'];

/** What two jobs of a test run may not use at once: each builds on all cores. */
export const GO_AT_ONCE: readonly string[] = ['the cores, for Go'];

/** What a binary runs on, in Node's words. */
export interface Target {
  platform: string;
  arch: string;
}

/** Hash of everything that goes into the binary: sources, embedded files, module versions, platform. */
function sourceHash({ platform, arch }: Target): string {
  const hash = createHash('sha256').update(`${platform}-${arch}\n`);
  const files = (readdirSync(caddySources, { recursive: true }) as string[])
    .filter((name) => !NOT_IN_BINARY.test(name))
    .filter((name) => statSync(join(caddySources, name)).isFile())
    .sort();
  for (const name of files)
    hash
      .update(`${name}\0`)
      .update(readFileSync(join(caddySources, name)))
      .update('\0');
  return hash.digest('hex').slice(0, 16);
}

/** Path the binary of the present sources has, whether it is there or not. */
export function caddyPath(target: Target = process): string {
  return join(cacheDir, BINARY, sourceHash(target), BINARY);
}

/** Environment of a Go command whose result runs on the target. */
export function goEnvironment({ platform, arch }: Target): NodeJS.ProcessEnv {
  return { ...process.env, CGO_ENABLED: '0', GOOS: platform, GOARCH: arch === 'x64' ? 'amd64' : arch };
}

/** The go command when it is new enough, else why not. */
export async function findGo(): Promise<{ go: string } | { problem: string }> {
  const go = findCommand('go');
  const wanted = GO_VERSION.join('.');
  if (!go) return { problem: `Go ${wanted} or newer is missing` };
  const { stdout } = await run(go, ['env', 'GOVERSION'], { timeout: 30_000, cwd: '/' });
  const [, major, minor] = /^go(\d+)\.(\d+)/.exec(stdout.trim()) ?? [];
  if (Number(major) > GO_VERSION[0] || (Number(major) === GO_VERSION[0] && Number(minor) >= GO_VERSION[1]))
    return { go };
  return { problem: `Go ${wanted} or newer is needed; ${go} is ${stdout.trim()}` };
}

/** Makes sure that the binary of the present sources exists and returns its path. */
export async function buildCaddy(target: Target = process): Promise<string> {
  const binary = caddyPath(target);
  if (existsSync(binary)) return binary;
  const go = await needGo();
  mkdirSync(join(cacheDir, BINARY), { recursive: true });
  // One build at a time: two would only slow each other down.
  const lock = await takeLock(join(cacheDir, BINARY, 'build.lock'), 'the build of the edge', {
    waitMs: BUILD_TIMEOUT_MS,
    waiting: (pid) => say(`  waiting for process ${pid}, which is building the edge …`),
  });
  try {
    if (!existsSync(binary)) await reported((report) => build(go, caddySources, binary, target, report));
  } finally {
    lock.release();
  }
  prune();
  return binary;
}

/** Builds an edge from sources in another folder, in the way the edge's own are built. */
export async function buildCaddyFrom(sources: string, binary: string): Promise<void> {
  await build(await needGo(), sources, binary, process);
}

/** Path of the go command. Throws a Refusal when it is missing or too old. */
export async function needGo(): Promise<string> {
  const found = await findGo();
  if ('problem' in found) throw new Refusal(`${found.problem}: https://go.dev/dl/`);
  return found.go;
}

/** Says in the Web UI of this machine's consoles, too, how far the build is. */
async function reported(work: (report: Reporter) => Promise<void>): Promise<void> {
  const report = reportEdgeBuild(downloadsDir);
  try {
    await work(report);
    report.end('built');
  } catch (error) {
    report.end('failed');
    throw error;
  }
}

async function build(go: string, sources: string, binary: string, target: Target, report?: Reporter): Promise<void> {
  const folder = join(binary, '..');
  mkdirSync(folder, { recursive: true });
  const temporary = `${binary}.${process.pid}`;
  const current = step('building the edge (Caddy and our modules)');
  let packages = 0;
  let downloads = 0;
  let lines: string[] = [];
  // The same sources give the same bytes, in whichever folder and commit.
  const reproducible = [...GO_BUILD_FLAGS, '-buildvcs=false', '-ldflags', '-s -w'];
  const child = spawn(go, ['build', '-v', ...reproducible, '-o', temporary, '.'], {
    cwd: sources,
    env: goEnvironment(target),
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: BUILD_TIMEOUT_MS,
  });
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    const fresh = chunk.split('\n').filter((line) => line.trim() !== '');
    for (const line of fresh) line.startsWith('go: downloading') ? downloads++ : packages++;
    lines = [...lines, ...fresh].slice(-40);
    report?.packages(packages);
    current.detail(packages > 0 ? `${packages} packages compiled` : `${downloads} modules downloaded`);
  });
  const code = await new Promise<number | null>((done, fail) => {
    child.on('error', fail);
    child.on('close', done);
  });
  if (code !== 0) {
    current.done('failed');
    rmSync(temporary, { force: true });
    throw new Refusal(`go build failed:\n${lines.join('\n')}`);
  }
  renameSync(temporary, binary);
  current.done(`done, ${Math.round(statSync(binary).size / 2 ** 20)} MiB`);
}

function prune(): void {
  const folder = join(cacheDir, BINARY);
  const builds = readdirSync(folder)
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isDirectory())
    .sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs);
  for (const old of builds.slice(KEPT_BUILDS)) rmSync(old, { recursive: true, force: true });
}
