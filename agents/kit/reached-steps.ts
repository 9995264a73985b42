// What a node reached while it waited to report: with how long ago each position was enforced, the console measures how
// long changes take and not how long nodes wait before they say so.
import { create } from '@bufbuild/protobuf';
import { type Reached, ReachedSchema } from '../../proto/gen/svc/node/v1/node_pb.js';

/** More are told as one: the earlier ones count as reached with the next. */
const MAX_STEPS = 32;

export class ReachedSteps {
  readonly #now: () => number;
  #epoch = 0n;
  #steps: { number: bigint; at: number }[] = [];

  /** `now`: a clock in milliseconds that only rises. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  reached(epoch: bigint, number: bigint): void {
    if (epoch !== this.#epoch) this.#steps = [];
    this.#epoch = epoch;
    if (this.#steps.at(-1)?.number === number) return;
    if (this.#steps.length === MAX_STEPS) this.#steps.shift();
    this.#steps.push({ number, at: this.#now() });
  }

  /** The steps since the last call, oldest first. */
  take(): Reached[] {
    const now = this.#now();
    const steps = this.#steps;
    this.#steps = [];
    return steps.map(({ number, at }) => create(ReachedSchema, { number, agoMicros: Math.round((now - at) * 1000) }));
  }
}
