// A piece of a test run that is started, measured and told by itself: a test file, a step of the check, a `go test`.
import type { Tally } from '../run-check.ts';

export const EVERY_TIME = ['check', 'go', 'unit', 'repo', 'integration', 'e2e'] as const;
export const SUITES = [...EVERY_TIME, 'race', 'long'] as const;
export type Suite = (typeof SUITES)[number];

/** What a job takes on a machine that does nothing else. */
export interface Cost {
  /** From start to end. */
  seconds: number;
  /** Processors that are busy with it, on average. */
  cores: number;
}

export interface Result extends Tally {
  seconds: number;
  /** Processor time of all its processes; undefined where nobody measured it. */
  cpuSeconds: number | undefined;
}

export interface Job {
  /** The file's path, or what it is. */
  name: string;
  suite: Suite;
  cost: Cost;
  /** What of the machine only one job may use at a time. */
  needs: readonly string[];
  /** Another attempt by itself tells a race with its neighbours from a fault. */
  again: boolean;
  run(): Promise<Result>;
}
