// What readers of streams share: one step after the other, and a pause after one that failed.
import { setTimeout as delay } from 'node:timers/promises';

export interface ReadLoop {
  stopped(): boolean;
  /** Reads once, or waits a little where there is nothing to read from. */
  step(): Promise<void>;
  /** A step failed; `first` says that the one before did not. */
  failed(err: unknown, first: boolean): void;
  /** Rest after a failure, in milliseconds. */
  pauseMs: number;
}

/** Runs the steps until it is stopped; never throws what a step throws. */
export async function readUntilStopped({ stopped, step, failed, pauseMs }: ReadLoop): Promise<void> {
  let failing = false;
  while (!stopped()) {
    try {
      await step();
      failing = false;
    } catch (err) {
      if (stopped()) return;
      failed(err, !failing);
      failing = true;
      await delay(pauseMs);
    }
  }
}
