// The last batches of one feed of one cluster, shared by all its streams: a stream holds a cursor into it, never a
// queue of its own, so a reader that stalls costs nothing but its place.
//
// Batches are contiguous: each one's `from` is at most the previous one's `to`. A gap empties the ring.

export interface RingBatch {
  readonly from: bigint;
  readonly to: bigint;
  readonly frame: Buffer;
  /** Milliseconds, when it was appended. */
  readonly at: number;
}

export interface RingLimits {
  bytes: number;
  ageMs: number;
}

export class Ring {
  readonly #limits: RingLimits;
  #batches: RingBatch[] = [];
  #bytes = 0;
  #head: bigint;
  #floor: bigint;

  /** Starts empty at `head`. */
  constructor(head: bigint, limits: RingLimits) {
    this.#head = head;
    this.#floor = head;
    this.#limits = limits;
  }

  /** Number that the newest batch leads to. */
  get head(): bigint {
    return this.#head;
  }

  /** Cursors from here on can be served. */
  get floor(): bigint {
    return this.#floor;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Answers whether the batch was new. */
  append(batch: RingBatch): boolean {
    if (batch.to <= this.#head) return false;
    if (batch.from > this.#head) this.clear(batch.from);
    if (this.#batches.length === 0) this.#floor = batch.from;
    this.#batches.push(batch);
    this.#bytes += batch.frame.length;
    this.#head = batch.to;
    this.trim(batch.at);
    return true;
  }

  /** Forgets everything; only cursors at `head` can continue. */
  clear(head: bigint): void {
    this.#batches = [];
    this.#bytes = 0;
    this.#head = head;
    this.#floor = head;
  }

  /** Drops what is beyond the limits, oldest first. */
  trim(now: number): void {
    let dropped = 0;
    for (const batch of this.#batches) {
      if (this.#bytes <= this.#limits.bytes && now - batch.at <= this.#limits.ageMs) break;
      this.#bytes -= batch.frame.length;
      dropped += 1;
    }
    if (dropped === 0) return;
    this.#batches = this.#batches.slice(dropped);
    this.#floor = this.#batches[0]?.from ?? this.#head;
  }

  /** The batch to send to a reader at `cursor`: undefined when it is up to date, 'lost' when it must start over. */
  next(cursor: bigint): RingBatch | 'lost' | undefined {
    if (cursor === this.#head) return undefined;
    if (cursor < this.#floor || cursor > this.#head) return 'lost';
    let low = 0;
    let high = this.#batches.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#batches[middle]!.to > cursor) high = middle;
      else low = middle + 1;
    }
    return this.#batches[low] ?? 'lost';
  }
}
