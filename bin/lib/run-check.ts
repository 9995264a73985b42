import { type CheckStep, checkSteps } from './check-steps.ts';
import { Refusal, say } from './progress.ts';

export interface Tally {
  passed: number;
  failed: number;
  skipped: number;
}

const AT_ONCE = 2;
const SHOWN_CHARACTERS = 20_000;

function explanation(error: unknown): string {
  const { stdout = '', stderr = '', message } = error as { stdout?: string; stderr?: string; message?: string };
  return `${stdout}${stderr}`.trim() || message || String(error);
}

/** Runs one step and tells what is wrong. */
export async function runStep(step: CheckStep): Promise<Tally & { seconds: number }> {
  const started = performance.now();
  const seconds = () => (performance.now() - started) / 1000;
  try {
    await step.run();
    return { passed: 1, failed: 0, skipped: 0, seconds: seconds() };
  } catch (error) {
    say(`  FAILED  ${step.name}\n${explanation(error).slice(0, SHOWN_CHARACTERS)}\n`);
    return { passed: 0, failed: 1, skipped: 0, seconds: seconds() };
  }
}

/** Runs the steps of the check, or the one of that name, two at a time, each told with its time. Throws a Refusal for an unknown name. */
export async function runCheck(only?: string): Promise<Tally> {
  const tally: Tally = { passed: 0, failed: 0, skipped: 0 };
  const queue: CheckStep[] = checkSteps.filter(({ name }) => only === undefined || name === only);
  if (queue.length === 0)
    throw new Refusal(`there is no step "${only}" of the check: ${checkSteps.map(({ name }) => name).join(', ')}`);
  const work = async () => {
    for (let current = queue.shift(); current; current = queue.shift()) {
      const { passed, failed, seconds } = await runStep(current);
      tally.passed += passed;
      tally.failed += failed;
      if (passed > 0) say(`  ok      ${current.name} (${seconds.toFixed(1)} s)`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return tally;
}
