// The test suites: ava's by folder and Go's, each with its output in a log file and its results as one tally.
import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { caddySources, findGo, GO_MODULES } from './caddy.ts';
import { failingFiles } from './failing-files.ts';
import { tail } from './processes.ts';
import { say, step } from './progress.ts';
import { cacheDir, root } from './root.ts';
import type { Tally } from './run-check.ts';
import { TapReader } from './tap.ts';

const SUITE_TIMEOUT_MS = 40 * 60_000;

function logFile(name: string): string {
  const folder = join(cacheDir, 'test-logs');
  mkdirSync(folder, { recursive: true });
  return join(folder, `${name}.log`);
}

/** Runs a child to its end, handing its stdout to `onText` and everything to the log. */
async function follow(child: ChildProcess, log: string, onText: (text: string) => void): Promise<number> {
  const file = createWriteStream(log);
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    file.write(text);
    onText(text);
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => file.write(text));
  const code = await new Promise<number>((done, fail) => {
    child.on('error', fail);
    child.on('close', (status) => done(status ?? 1));
  });
  await new Promise<void>((done) => file.end(done));
  return code;
}

function testFiles(folder: string): string[] {
  const path = join(root, 'test', folder);
  if (!existsSync(path)) return [];
  const names = readdirSync(path, { recursive: true }) as string[];
  return names.filter((name) => name.endsWith('.test.ts')).map((name) => `test/${folder}/${name}`);
}

function close(name: string, tally: Tally, code: number, log: string): void {
  // A run that ended badly without naming a failed test (a crash, a build error, a timeout) failed all the same.
  if (code !== 0 && tally.failed === 0) {
    tally.failed++;
    say(`  FAILED  ${name}: the run ended with exit code ${code}; the end of ${log}:\n${tail(log, 30)}`);
  }
}

/**
 * Files that may fail beside others and be run once more by themselves: real servers, browsers and 2,000 tests share
 * the cores of one machine. More failing files than this are no accident of the load.
 */
const MAX_UNSTEADY_FILES = 3;

/** Runs the test files below test/<folder>; `only` narrows them to paths that contain it, `again` allows a second run. */
export async function runAva(
  folder: string,
  env: NodeJS.ProcessEnv,
  options: { concurrency?: number; only?: string[]; again?: boolean } = {},
): Promise<Tally> {
  const { only = [], concurrency, again = false } = options;
  const files = testFiles(folder).filter((file) => only.length === 0 || only.some((part) => file.includes(part)));
  if (files.length === 0) return { passed: 0, failed: 0, skipped: 0 };
  const first = await runFiles(folder, files, env, concurrency);
  const failing = again ? failingFiles(files, first.failures) : [];
  if (failing.length === 0 || failing.length > MAX_UNSTEADY_FILES) return first;
  const second = await runFiles(`${folder} (again)`, failing, env, 1);
  if (second.failed === 0)
    say(`  UNSTEADY  failed beside others, passed alone (each hides a race that wants mending): ${failing.join(', ')}`);
  return {
    passed: first.passed + Math.max(first.failed - second.failed, 0),
    failed: second.failed,
    skipped: first.skipped,
  };
}

async function runFiles(
  name: string,
  files: string[],
  env: NodeJS.ProcessEnv,
  concurrency?: number,
): Promise<Tally & { failures: string[] }> {
  const failures: string[] = [];
  const tap = new TapReader((text) => {
    failures.push(text);
    say(`  FAILED  ${text}\n`);
  });
  const log = logFile(name.replace(/\W+/g, '-'));
  const current = step(`${name} tests`);
  const cli = join(root, 'node_modules', 'ava', 'entrypoints', 'cli.js');
  const args = [cli, '--tap', ...(concurrency ? [`--concurrency=${concurrency}`] : []), ...files];
  const child = spawn(process.execPath, args, {
    cwd: root,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: SUITE_TIMEOUT_MS,
  });
  const code = await follow(child, log, (text) => {
    tap.write(text);
    current.detail(`${tap.result.passed} passed, ${tap.result.failed} failed`);
  });
  tap.end();
  close(name, tap.result, code, log);
  current.done(`${tap.result.passed} passed, ${tap.result.failed} failed, ${tap.result.skipped} skipped`);
  return { ...tap.result, failures };
}

interface GoEvent {
  Action: string;
  Package?: string;
  Test?: string;
  Output?: string;
}

/** Packages of the data plane with state that goroutines share: the race detector sees their tests each time. */
const SHARED_STATE = [
  'exchange',
  'svcbans',
  'svccc',
  'svcchallenge',
  'svccore',
  'svccount',
  'svcedge',
  'svclisten',
  'svclists',
  'svcorigin',
  'svcsites',
];
/** With the race detector a test takes several times as long. */
const RACE = ['-race', '-timeout', '30m'];

/** A `go test` in one module. */
interface GoRun {
  cwd: string;
  args: string[];
  log: string;
}

/** Runs `go test ./...` of the data plane and the attack kit, and the race detector over packages with shared state. */
export async function runGo(): Promise<Tally> {
  const plain = GO_MODULES.map((cwd) => ({ cwd, args: ['./...'], log: `go-${basename(cwd)}` }));
  const shared = SHARED_STATE.map((name) => `./${name}`);
  const race = [{ cwd: caddySources, args: [...RACE, ...shared], log: 'race-shared' }];
  const tally = await runGoTests('Go tests', plain);
  const raced = await runGoTests('Go race detector', race);
  return {
    passed: tally.passed + raced.passed,
    failed: tally.failed + raced.failed,
    skipped: tally.skipped + raced.skipped,
  };
}

/** Runs the race detector over everything in Go. */
export function runRace(): Promise<Tally> {
  const runs = GO_MODULES.map((cwd) => ({ cwd, args: [...RACE, './...'], log: `race-${basename(cwd)}` }));
  return runGoTests('Go race detector', runs);
}

async function runGoTests(name: string, runs: readonly GoRun[]): Promise<Tally> {
  const tally: Tally = { passed: 0, failed: 0, skipped: 0 };
  const found = await findGo();
  if ('problem' in found) {
    say(`  FAILED  ${name}: ${found.problem}`);
    return { ...tally, failed: 1 };
  }
  const current = step(name);
  const outputs = new Map<string, string>();
  let rest = '';
  const onEvent = (event: GoEvent) => {
    const test = `${event.Package ?? ''} ${event.Test ?? ''}`;
    if (event.Action === 'output') outputs.set(test, ((outputs.get(test) ?? '') + (event.Output ?? '')).slice(-10_000));
    if (event.Action === 'build-output') say(`  ${event.Output?.trimEnd()}`);
    if (event.Action === 'fail' && event.Test) say(`  FAILED  ${test}\n${outputs.get(test) ?? ''}`);
    if (!event.Test) return;
    if (event.Action === 'pass') tally.passed++;
    if (event.Action === 'fail') tally.failed++;
    if (event.Action === 'skip') tally.skipped++;
    current.detail(`${tally.passed} passed, ${tally.failed} failed`);
  };
  for (const { cwd, args, log: logName } of runs) {
    // The race detector is C.
    const env = { ...process.env, CGO_ENABLED: args.includes('-race') ? '1' : '0' };
    const child = spawn(found.go, ['test', '-json', ...args], {
      cwd,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: SUITE_TIMEOUT_MS,
    });
    const log = logFile(logName);
    const code = await follow(child, log, (text) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) if (line.startsWith('{')) onEvent(JSON.parse(line) as GoEvent);
    });
    close(name, tally, code, log);
  }
  current.done(`${tally.passed} passed, ${tally.failed} failed, ${tally.skipped} skipped`);
  return tally;
}
