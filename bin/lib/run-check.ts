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

/** Runs every step of the check, two at a time, each told with its time. */
export async function runCheck(): Promise<Tally> {
  const tally: Tally = { passed: 0, failed: 0, skipped: 0 };
  const queue: CheckStep[] = [...checkSteps];
  const work = async () => {
    for (let current = queue.shift(); current; current = queue.shift()) {
      const started = Date.now();
      const seconds = () => ((Date.now() - started) / 1000).toFixed(1);
      try {
        await current.run();
        tally.passed++;
        say(`  ok      ${current.name} (${seconds()} s)`);
      } catch (error) {
        tally.failed++;
        say(`  FAILED  ${current.name} (${seconds()} s)\n${explanation(error).slice(0, SHOWN_CHARACTERS)}\n`);
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return tally;
}
