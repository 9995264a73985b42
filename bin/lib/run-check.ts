import { type CheckStep, checkSteps } from './check-steps.ts';
import { say } from './progress.ts';

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

/** Runs one step and tells what is wrong; its processor time is nobody's to measure. */
export async function runStep(step: CheckStep): Promise<Tally & { seconds: number; cpuSeconds: undefined }> {
  const started = performance.now();
  const seconds = () => (performance.now() - started) / 1000;
  try {
    await step.run();
    return { passed: 1, failed: 0, skipped: 0, seconds: seconds(), cpuSeconds: undefined };
  } catch (error) {
    say(`  FAILED  ${step.name}\n${explanation(error).slice(0, SHOWN_CHARACTERS)}\n`);
    return { passed: 0, failed: 1, skipped: 0, seconds: seconds(), cpuSeconds: undefined };
  }
}

/** Runs every step of the check, two at a time, each told with its time. */
export async function runCheck(): Promise<Tally> {
  const tally: Tally = { passed: 0, failed: 0, skipped: 0 };
  const queue: CheckStep[] = [...checkSteps];
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
