// The pages of the Web UI, built from console/, contract/ and docs/ into console/dist when their sources changed. A build takes
// place beside what is served and goes in at its end; files of the build before stay, for pages that are still open.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { takeLock } from './lock.ts';
import { Refusal, say, step } from './progress.ts';
import { cacheDir, root } from './root.ts';

const BUILD_TIMEOUT_MS = 10 * 60_000;
const workspace = join(root, 'console');
const dist = join(workspace, 'dist');
const work = join(cacheDir, 'console');
/** A dot file: the gateway serves none. */
const stampFile = join(dist, '.sources');
const vite = join(root, 'node_modules', 'vite', 'bin', 'vite.js');

interface Stamp {
  sources: string;
  /** Files of the present build, and of the one before. */
  files: string[];
  before: string[];
}

/** Hash of everything a build reads: sources, the contract, the docs, and versions of packages. */
function sourceHash(): string {
  const hash = createHash('sha256');
  const folders = ['build', 'public', 'src'].map((name) => join(workspace, name));
  const single = ['index.html', 'vite.config.ts', 'package.json'].map((name) => join(workspace, name));
  const docs = [join(root, 'docs'), join(root, 'docs', 'reference')].flatMap(documentsIn);
  const files = [...folders, join(root, 'contract')].flatMap(filesBelow);
  for (const file of [...files, ...docs, ...single, join(root, 'package-lock.json')].sort())
    hash
      .update(`${file.slice(root.length)}\0`)
      .update(readFileSync(file))
      .update('\0');
  return hash.digest('hex').slice(0, 16);
}

/** The documents that the Web UI shows: those of the folder itself. */
function documentsIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(folder, name));
}

function filesBelow(folder: string): string[] {
  if (!existsSync(folder)) return [];
  const names = readdirSync(folder, { recursive: true }) as string[];
  return names.map((name) => join(folder, name)).filter((file) => statSync(file).isFile());
}

function readStamp(): Stamp | undefined {
  return existsSync(stampFile) ? (JSON.parse(readFileSync(stampFile, 'utf8')) as Stamp) : undefined;
}

/** Makes sure that console/dist is built from the present sources. */
export async function buildWebConsole(): Promise<void> {
  if (!existsSync(vite)) {
    // Without development packages: an image brings its pages along.
    if (!existsSync(join(dist, 'index.html')))
      say('The pages of the Web UI are not built. The API works without them.');
    return;
  }
  if (readStamp()?.sources === sourceHash()) return;
  mkdirSync(work, { recursive: true });
  const lock = await takeLock(join(work, 'build.lock'), 'the build of the Web UI', {
    waitMs: BUILD_TIMEOUT_MS,
    waiting: (pid) => say(`  waiting for process ${pid}, which is building the Web UI …`),
  });
  try {
    const sources = sourceHash();
    if (readStamp()?.sources !== sources) await build(sources);
  } finally {
    lock.release();
  }
}

async function build(sources: string): Promise<void> {
  const out = join(work, `build-${process.pid}`);
  const current = step('building the Web UI');
  try {
    await runVite(out);
    install(out, sources);
    current.done(`done, ${filesBelow(join(out, 'assets')).filter((name) => name.endsWith('.js')).length} scripts`);
  } catch (error) {
    current.done('failed');
    throw error;
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
}

async function runVite(out: string): Promise<void> {
  const args = [vite, 'build', '--outDir', out, '--emptyOutDir', '--logLevel', 'warn'];
  const child = spawn(process.execPath, args, {
    cwd: workspace,
    env: { ...process.env, NODE_ENV: 'production' },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: BUILD_TIMEOUT_MS,
  });
  let output = '';
  const keep = (text: string) => {
    output = (output + text).slice(-8000);
  };
  child.stdout.setEncoding('utf8').on('data', keep);
  child.stderr.setEncoding('utf8').on('data', keep);
  const code = await new Promise<number | null>((done, fail) => {
    child.on('error', fail);
    child.on('close', done);
  });
  if (code !== 0) throw new Refusal(`the Web UI could not be built:\n${output.trimEnd()}`);
}

/** Files first, the page that names them last; what neither this build nor the one before has goes. */
function install(out: string, sources: string): void {
  const files = filesBelow(out).map((file) => file.slice(out.length + 1));
  const before = readStamp()?.files ?? [];
  const isPage = (name: string) => name.startsWith('index.html');
  for (const name of [...files].sort((a, b) => Number(isPage(a)) - Number(isPage(b)))) {
    const target = join(dist, name);
    mkdirSync(dirname(target), { recursive: true });
    copyFileSync(join(out, name), `${target}.new`);
    renameSync(`${target}.new`, target);
  }
  const kept = new Set([...files, ...before]);
  for (const file of filesBelow(dist)) if (!kept.has(file.slice(dist.length + 1))) rmSync(file);
  writeFileSync(stampFile, JSON.stringify({ sources, files, before } satisfies Stamp));
}
