// Jobs of Go: the tests of each module, and the race detector.
import { basename } from 'node:path';
import { caddySources, findGo, GO_AT_ONCE, GO_BUILD_FLAGS, GO_MODULES, GO_TEST_TAGS } from '../caddy.ts';
import { say } from '../progress.ts';
import { judged } from './ava-jobs.ts';
import { costOf } from './costs.ts';
import type { Job, Result, Suite } from './job.ts';
import { logFile, runMeasured } from './measured.ts';

interface GoEvent {
  Action: string;
  Package?: string;
  Test?: string;
  Output?: string;
}

/**
 * Packages of the data plane whose state most other packages use: the race detector sees their tests each time. All others are
 * left to the suite `race`, because they take long to compile for it.
 */
const SHARED_STATE = ['exchange', 'features/bans', 'features/count'];
/** With the race detector a test takes several times as long. */
const RACE = ['-race', '-timeout', '30m'];
const KEPT_OUTPUT = 10_000;

/** `go test ./...` of each module, and the race detector over packages with shared state. */
export function goJobs(): Job[] {
  // `go vet` is a step of the check.
  const plain = GO_MODULES.map((cwd) =>
    goJob('go', `go ${basename(cwd)}`, cwd, ['-vet=off', ...GO_BUILD_FLAGS, './...']),
  );
  const shared = SHARED_STATE.map((name) => `./${name}`);
  return [...plain, goJob('go', 'go race', caddySources, ['-vet=off', ...RACE, ...shared])];
}

/** The race detector over everything in Go. */
export function raceJobs(): Job[] {
  return GO_MODULES.map((cwd) => goJob('race', `race ${basename(cwd)}`, cwd, ['-vet=off', ...RACE, './...']));
}

/** `go test` of some packages of a module. */
export function goJob(suite: Suite, name: string, cwd: string, args: string[], env: NodeJS.ProcessEnv = {}): Job {
  const run = () => runGo(name, cwd, args, env);
  return { name, suite, cost: costOf(suite, name), needs: GO_AT_ONCE, again: false, run };
}

async function runGo(name: string, cwd: string, args: string[], more: NodeJS.ProcessEnv): Promise<Result> {
  const tally = { passed: 0, failed: 0, skipped: 0 };
  const found = await findGo();
  if ('problem' in found) {
    say(`  FAILED  ${name}: ${found.problem}`);
    return { ...tally, failed: 1, seconds: 0, cpuSeconds: undefined };
  }
  const outputs = new Map<string, string>();
  const onEvent = (event: GoEvent) => {
    const test = `${event.Package ?? ''} ${event.Test ?? ''}`;
    if (event.Action === 'output')
      outputs.set(test, ((outputs.get(test) ?? '') + (event.Output ?? '')).slice(-KEPT_OUTPUT));
    if (event.Action === 'build-output') say(`  ${event.Output?.trimEnd()}`);
    if (event.Action === 'fail' && event.Test) say(`  FAILED  ${test}\n${outputs.get(test) ?? ''}`);
    if (!event.Test) return;
    if (event.Action === 'pass') tally.passed++;
    if (event.Action === 'fail') tally.failed++;
    if (event.Action === 'skip') tally.skipped++;
  };
  let rest = '';
  const log = logFile(name);
  const measured = await runMeasured({
    command: found.go,
    args: ['test', '-json', ...GO_TEST_TAGS, ...args],
    cwd,
    // The race detector is C.
    env: { ...process.env, CGO_ENABLED: args.includes('-race') ? '1' : '0', ...more },
    log,
    onText: (text) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) if (line.startsWith('{')) onEvent(JSON.parse(line) as GoEvent);
    },
  });
  return judged(name, { ...tally, ...measured }, measured.code, log);
}
