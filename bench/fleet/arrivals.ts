// When which node reached which number of a feed, in milliseconds of the system clock with fractions.

/** Batches remembered: with 1,000 nodes 8 KB each. */
const KEPT = 2_000;

export class Arrivals {
  readonly #nodes: number;
  readonly #byNumber = new Map<bigint, Float64Array>();

  constructor(nodes: number) {
    this.#nodes = nodes;
  }

  record(node: number, reached: bigint, at: number): void {
    let times = this.#byNumber.get(reached);
    if (!times) {
      times = new Float64Array(this.#nodes).fill(Number.NaN);
      this.#byNumber.set(reached, times);
      if (this.#byNumber.size > KEPT) this.#byNumber.delete(this.#byNumber.keys().next().value!);
    }
    if (Number.isNaN(times[node])) times[node] = at;
  }

  /** Per node the time at which it reached `number` or went beyond; undefined where it has not. */
  reached(number: bigint): (number | undefined)[] {
    const first: (number | undefined)[] = new Array(this.#nodes).fill(undefined);
    for (const [reached, times] of this.#byNumber) {
      if (reached < number) continue;
      for (let node = 0; node < this.#nodes; node++) {
        const time = times[node]!;
        if (!Number.isNaN(time) && !(first[node]! <= time)) first[node] = time;
      }
    }
    return first;
  }
}
