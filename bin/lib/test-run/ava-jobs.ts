// Jobs of ava's suites: a file each where tests start servers, all files in threads where they do not.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { tail } from '../processes.ts';
import { say } from '../progress.ts';
import { root } from '../root.ts';
import { TapReader } from '../tap.ts';
import { costOf } from './costs.ts';
import type { Job, Result, Suite } from './job.ts';
import { logFile, runMeasured } from './measured.ts';

export const AVA_SUITES = ['unit', 'repo', 'integration', 'e2e'] as const satisfies readonly Suite[];
type AvaSuite = (typeof AVA_SUITES)[number];

/** Jobs of the unit tests. Machines with other numbers of cores must agree on the jobs of a shard and on their costs. */
const UNIT_PARTS = 2;

/** The suite of a test file: the folder it lies in. */
export function suiteOf(file: string): AvaSuite {
  return AVA_SUITES.find((suite) => file.startsWith(`test/${suite}/`)) ?? 'unit';
}

/** What a test file says about itself: `// Alone with: the ports of launchers`. */
const ALONE_WITH = /^\/\/ Alone with: (.+)$/gm;

/** Paths of the suite's files, from the root of the repository. */
export function testFiles(suite: AvaSuite): string[] {
  const path = join(root, 'test', suite);
  if (!existsSync(path)) return [];
  const names = readdirSync(path, { recursive: true }) as string[];
  return names
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => `test/${suite}/${name}`)
    .sort();
}

/**
 * Once a thread with nothing left to do was never woken, until a debugger was attached to it: its loop waited in epoll. libuv
 * then changes what it waits for through io_uring; without that it is one system call each.
 */
const PLAIN_EPOLL = { UV_USE_IO_URING: '0' };

/** Jobs of the files that `chosen` takes. */
export function avaJobs(suite: AvaSuite, env: () => NodeJS.ProcessEnv, chosen: (file: string) => boolean): Job[] {
  const files = testFiles(suite).filter(chosen);
  if (suite === 'integration' || suite === 'e2e') return files.map((file) => fileJob(suite, file, env));
  const parts = Math.min(suite === 'unit' ? UNIT_PARTS : 1, files.length);
  return Array.from({ length: parts }, (_, part) => {
    const name = parts === 1 ? suite : `${suite} ${part + 1}/${parts}`;
    const own = files.filter((_file, index) => index % parts === part);
    // Threads start in half the time of processes; these tests share nothing of their process.
    const args = [suite === 'unit' ? '--worker-threads' : '--no-worker-threads', '--concurrency=1', ...own];
    const run = () => runAva(name, args, suite === 'unit' ? { ...env(), ...PLAIN_EPOLL } : env());
    return { name, suite, cost: costOf(suite, name), needs: [], again: false, run };
  });
}

/** A job of one test file. */
export function fileJob(suite: Suite, file: string, env: () => NodeJS.ProcessEnv, name = file): Job {
  const needs = [...readFileSync(join(root, file), 'utf8').matchAll(ALONE_WITH)].map(([, need]) => need!);
  const run = () => runAva(name, ['--no-worker-threads', file], env());
  return { name, suite, cost: costOf(suite, name), needs, again: true, run };
}

/** Taking servers down takes a while; a process that goes on for longer waits for something that was left behind. */
const LINGERS_MS = 5_000;

async function runAva(name: string, args: string[], env: NodeJS.ProcessEnv): Promise<Result> {
  const tap = new TapReader((text) => say(`  FAILED  ${name}\n${text}\n`));
  const log = logFile(name.replace(/^test\//, '').replace(/\.test\.ts$/, ''));
  let lastTest = performance.now();
  const cli = join(root, 'node_modules', 'ava', 'entrypoints', 'cli.js');
  const measured = await runMeasured({
    command: process.execPath,
    args: [cli, '--tap', ...args],
    cwd: root,
    env,
    log,
    onText: (text) => {
      if (tap.write(text)) lastTest = performance.now();
    },
  });
  const lingeredMs = performance.now() - lastTest;
  if (lingeredMs > LINGERS_MS) say(`  ${name}: ended ${(lingeredMs / 1000).toFixed(0)} s after its last test`);
  tap.end();
  return judged(name, { ...tap.result, ...measured }, measured.code, log);
}

/** A run that ended badly without naming a failed test (a crash, a build error, a timeout) failed all the same. */
export function judged(name: string, result: Result, code: number, log: string): Result {
  const { passed, failed, skipped, seconds, cpuSeconds } = result;
  const silent = code !== 0 && failed === 0;
  if (silent) say(`  FAILED  ${name}: it ended with exit code ${code}; the end of ${log}:\n${tail(log, 30)}`);
  return { passed, failed: silent ? 1 : failed, skipped, seconds, cpuSeconds };
}
