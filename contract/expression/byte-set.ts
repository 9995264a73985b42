/** A set of bytes, as the characters of a pattern over bytes are. */
export class ByteSet {
  /** Bit per byte. */
  readonly bits: readonly number[];

  private constructor(bits: readonly number[]) {
    this.bits = bits;
  }

  static of(...bytes: readonly number[]): ByteSet {
    return ByteSet.ranges(...bytes.map((byte) => [byte, byte] as const));
  }

  static ranges(...ranges: readonly (readonly [first: number, last: number])[]): ByteSet {
    const bits = new Array<number>(8).fill(0);
    for (const [first, last] of ranges) {
      for (let byte = first; byte <= last; byte++) bits[byte >> 5] = (bits[byte >> 5]! | (1 << (byte & 31))) >>> 0;
    }
    return new ByteSet(bits);
  }

  has(byte: number): boolean {
    return (this.bits[byte >> 5]! & (1 << (byte & 31))) !== 0;
  }

  or(other: ByteSet): ByteSet {
    return new ByteSet(this.bits.map((word, index) => (word | other.bits[index]!) >>> 0));
  }

  inverted(): ByteSet {
    return new ByteSet(this.bits.map((word) => ~word >>> 0));
  }
}
