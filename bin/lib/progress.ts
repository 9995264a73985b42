// What the launchers tell a person. All of it goes to stderr, so that stdout stays usable by scripts.

export interface Step {
  /** Replaces the detail shown by the next progress line. */
  detail(text: string): void;
  /** Ends the step; with a text the line says it instead of the time alone. */
  done(text?: string): void;
}

const PROGRESS_EVERY_MS = 5000;

export function say(line = ''): void {
  process.stderr.write(`${line}\n`);
}

/** Starts a named step; a step that lasts says so every five seconds. */
export function step(title: string): Step {
  const started = Date.now();
  let detail = '';
  let shown = false;
  const seconds = () => ((Date.now() - started) / 1000).toFixed(1);
  const timer = setInterval(() => {
    shown = true;
    say(`  ${title} … ${seconds()} s${detail ? ` (${detail})` : ''}`);
  }, PROGRESS_EVERY_MS);
  timer.unref();
  return {
    detail(text) {
      detail = text;
    },
    done(text) {
      clearInterval(timer);
      if (text === '' && !shown) return;
      say(`  ${title}: ${text || 'done'} (${seconds()} s)`);
    },
  };
}

/** Runs `work` as a step and names the step when it fails. */
export async function during<T>(title: string, work: (step: Step) => Promise<T>): Promise<T> {
  const current = step(title);
  try {
    const result = await work(current);
    current.done();
    return result;
  } catch (error) {
    current.done('failed');
    throw error;
  }
}

/** An error whose message is the whole explanation: printed without a stack. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
}

/** Prints an error of a launcher and sets the exit code. */
export function report(error: unknown): void {
  if (error instanceof Refusal) say(error.message);
  else say(error instanceof Error ? (error.stack ?? error.message) : String(error));
  process.exitCode = 1;
}
