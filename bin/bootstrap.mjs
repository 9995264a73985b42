// Runs a TypeScript file of this repository on the pinned Node, installing the npm packages first when they are not those
// of package-lock.json. Plain JavaScript without dependencies, because it runs before anything is installed and on any
// Node from 20 on. All its messages go to stderr: stdout belongs to the script (`eval "$(npm run -s demo:env)"`).
//
// Usage: node bin/bootstrap.mjs <file.ts> [arguments]
import { spawn, spawnSync } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { constants } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const cacheDir = join(root, '.cache');
const NEEDED_MAJOR = 24;
const INSTALL_LOCK_STALE_MS = 30 * 60_000;

const say = (line) => process.stderr.write(`${line}\n`);

/** PATH without the .bin folders npm puts in front of it: `node` there is a package that `npm ci` is about to replace. */
function pathWithoutPackages() {
  const parts = (process.env.PATH ?? '').split(delimiter);
  return parts.filter(
    (part) => part !== '' && !/[\\/]node_modules[\\/]\.bin$/.test(part) && !part.includes('node-gyp-bin'),
  );
}

function readJson(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
}

/**
 * Says why node_modules is not what package-lock.json asks for, or undefined when it is. npm writes
 * node_modules/.package-lock.json as the last step of an installation, so an interrupted one has none.
 */
function installationGap() {
  const wanted = readJson(join(root, 'package-lock.json'))?.packages;
  if (!wanted) throw new Error('package-lock.json is missing or not JSON');
  const present = readJson(join(root, 'node_modules', '.package-lock.json'))?.packages;
  if (!present) return 'no packages are installed yet';
  const production = process.env.NODE_ENV === 'production';
  for (const [path, want] of Object.entries(wanted)) {
    if (path === '') continue;
    const have = present[path];
    if (!have) {
      if (want.optional || want.devOptional || want.peer || (production && want.dev)) continue;
      return `${path} is missing`;
    }
    if (have.version !== want.version || have.integrity !== want.integrity) return `${path} has changed`;
  }
  return undefined;
}

/** Takes the installation lock; waits while another process of this machine installs. */
async function lockInstallation() {
  const file = join(cacheDir, 'npm-ci.lock');
  mkdirSync(cacheDir, { recursive: true });
  const since = Date.now();
  for (let told = false; ; ) {
    try {
      const fd = openSync(file, 'wx');
      writeSync(fd, String(process.pid));
      closeSync(fd);
      return () => rmSync(file, { force: true });
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
    }
    const holder = Number(readJson(file) ?? 0);
    let alive = Date.now() - since < 1000 && holder === 0;
    try {
      if (holder > 0) alive = process.kill(holder, 0);
    } catch (error) {
      alive = error.code === 'EPERM';
    }
    if (!alive || Date.now() - since > INSTALL_LOCK_STALE_MS) {
      rmSync(file, { force: true });
      continue;
    }
    if (!told) say(`process ${holder} installs the npm packages, waiting for it …`);
    told = true;
    await new Promise((done) => setTimeout(done, 250));
  }
}

/** Runs `npm ci`; its output is shown only when it fails. */
async function install(reason) {
  say(`installing npm packages (${reason})`);
  const started = Date.now();
  const seconds = () => Math.round((Date.now() - started) / 1000);
  const args = ['ci', '--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error'];
  const nodeOfNpm = process.env.npm_node_execpath;
  const viaNpm = process.env.npm_execpath?.endsWith('.js') && nodeOfNpm && !nodeOfNpm.includes(`${root}/node_modules`);
  const [command, commandArgs] = viaNpm ? [nodeOfNpm, [process.env.npm_execpath, ...args]] : ['npm', args];
  // npm hands its own settings down as npm_config_*; the ones of the outer `npm run` must not reach this installation.
  const env = { ...process.env, PATH: pathWithoutPackages().join(delimiter) };
  for (const name of ['npm_config_ignore_scripts', 'npm_config_loglevel']) delete env[name];
  const child = spawn(command, commandArgs, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  const keep = (chunk) => {
    output = (output + chunk).slice(-20_000);
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  const progress = setInterval(() => say(`  npm ci … ${seconds()} s`), 5000);
  const code = await new Promise((done) => {
    child.on('error', (error) => {
      keep(`${error.message}\n`);
      done(127);
    });
    child.on('close', (status, signal) => done(status ?? 128 + (constants.signals[signal] ?? 0)));
  });
  clearInterval(progress);
  if (code !== 0) {
    say(output.trimEnd());
    say(
      `npm ci failed (exit code ${code}). Check that the npm registry can be reached, then run the same command again.`,
    );
    process.exit(1);
  }
  say(`npm packages installed in ${seconds()} s`);
}

/** First command that is a Node of the needed version: the pinned package, this process, then PATH. */
function findNode() {
  const pinned = join(root, 'node_modules', `node-${process.platform}-${process.arch}`, 'bin', 'node');
  const candidates = [pinned, process.execPath, ...pathWithoutPackages().map((folder) => join(folder, 'node'))];
  for (const candidate of candidates) {
    if (!existsSync(candidate)) continue;
    if (candidate === process.execPath) {
      if (Number(process.versions.node.split('.')[0]) >= NEEDED_MAJOR) return candidate;
      continue;
    }
    // A binary of another C library exists and still does not run, so it is asked for its version.
    const answer = spawnSync(candidate, ['--version'], { encoding: 'utf8', timeout: 20_000 });
    const major = Number(/^v(\d+)\./.exec(answer.stdout ?? '')?.[1]);
    if (answer.status === 0 && major >= NEEDED_MAJOR) return candidate;
  }
  const how =
    process.platform === 'darwin'
      ? 'brew install node@24 && brew link --overwrite node@24'
      : 'npm install --global n && n 24';
  say(
    `This project needs Node ${NEEDED_MAJOR}. No pinned build runs on ${process.platform}-${process.arch}, and this is ${process.version}.`,
  );
  say(`Install it, then run the same command again:\n  ${how}`);
  process.exit(1);
}

/** Who started this process: its parent and, where npm put a shell in between, the parent of that. */
function starters() {
  const parent = process.ppid;
  try {
    const isShellOfNpm = readFileSync(`/proc/${parent}/cmdline`, 'utf8').split('\0')[1] === '-c';
    if (!isShellOfNpm) return String(parent);
    const stat = readFileSync(`/proc/${parent}/stat`, 'utf8');
    return `${parent} ${stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]}`;
  } catch {
    return String(parent);
  }
}

/** Runs the script with this terminal, hands signals on and ends with its exit code. */
function run(node, script, args) {
  const env = {
    ...process.env,
    // Packages bring commands of their own: one of them is called nft, and is not the firewall's.
    PATH: [dirname(node), ...pathWithoutPackages()].join(delimiter),
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? join(cacheDir, 'compile'),
    SVC_LAUNCHER_PID: String(process.pid),
  };
  const child = spawn(node, [resolve(root, script), ...args], { stdio: 'inherit', env });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR2']) {
    process.on(signal, () => child.kill(signal));
  }
  // npm killed with SIGKILL cannot pass anything on: notice that it is gone and stop what it started.
  if (process.env.npm_lifecycle_event) {
    const before = starters();
    setInterval(() => {
      if (starters() !== before) child.kill('SIGTERM');
    }, 500).unref();
  }
  child.on('error', (error) => {
    say(`cannot run ${node}: ${error.message}`);
    process.exit(1);
  });
  child.on('exit', (code, signal) => process.exit(code ?? 128 + (constants.signals[signal] ?? 0)));
}

const [script, ...args] = process.argv.slice(2);
if (!script || !existsSync(resolve(root, script))) {
  say(`usage: node bin/bootstrap.mjs <file.ts> [arguments]${script ? `\nno such file: ${script}` : ''}`);
  process.exit(2);
}
if (Number(process.versions.node.split('.')[0]) < 20) {
  say(`This launcher needs Node 20 or newer; this is ${process.version}. Install a newer Node.`);
  process.exit(1);
}
if (installationGap()) {
  const unlock = await lockInstallation();
  try {
    const gap = installationGap();
    if (gap) await install(gap);
  } finally {
    unlock();
  }
}
run(findNode(), script, args);
