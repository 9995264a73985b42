// The steps of the check as jobs of a test run, each in a process of its own, which measures what it takes.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CheckStep, checkSteps } from '../check-steps.ts';
import { say } from '../progress.ts';
import { root } from '../root.ts';
import { costOf } from './costs.ts';
import type { Job, Result } from './job.ts';
import { logFile, runMeasured } from './measured.ts';

/** A job for each step that `chosen` takes. */
export function checkJobs(chosen: (step: CheckStep) => boolean = () => true): Job[] {
  return checkSteps.filter(chosen).map((step) => {
    const name = `check ${step.name}`;
    const run = () => runCheckStep(step.name, name);
    return { name, suite: 'check', cost: costOf('check', name), needs: step.needs ?? [], again: false, run };
  });
}

async function runCheckStep(step: string, name: string): Promise<Result> {
  const log = logFile(name);
  const { code, seconds, cpuSeconds } = await runMeasured({
    command: process.execPath,
    args: [join(root, 'bin', 'check.ts'), '--step', step],
    cwd: root,
    env: process.env,
    log,
    onText: () => undefined,
  });
  const failed = code === 0 ? 0 : 1;
  if (failed > 0) say(readFileSync(log, 'utf8').trimEnd());
  return { passed: 1 - failed, failed, skipped: 0, seconds, cpuSeconds };
}
