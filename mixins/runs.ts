// For services that run something of their own from their start to their end.
import type { ServiceSchema } from 'moleculer';

export interface Run {
  /** What it throws ends the start of the process. */
  start?(): void | Promise<void>;
  stop(): Promise<void>;
}

/** Makes the run when the service starts, and ends it with the service. */
export function runs(make: () => Run): Partial<ServiceSchema> {
  let run: Run | null = null;
  return {
    async started() {
      run = make();
      await run.start?.();
    },
    async stopped() {
      await run?.stop();
    },
  };
}
