import type { Clock } from '../../../../agents/edge/lib/clock.ts';

/** Where a test's wall clock starts, Unix ms. */
export const START = 1_800_000_000_000;

/** Clocks that the test moves. */
export class TestClock implements Clock {
  wallMs = START;
  monotonicMs = 5000;
  wall(): number {
    return this.wallMs;
  }
  monotonic(): number {
    return this.monotonicMs;
  }
  pass(ms: number): void {
    this.wallMs += ms;
    this.monotonicMs += ms;
  }
}
