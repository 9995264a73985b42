// Sum of many 32-byte hashes modulo 2^256, kept as eight 32-bit limbs so that a hundred thousand of them cost milliseconds.
import type { EntryHash } from './entry.ts';

const LIMBS = 8;
const BASE = 2 ** 32;
/** Limbs stay exact in a double while fewer hashes than this are pending. */
const CARRY_EVERY = 2 ** 20;

export class SetSum {
  private readonly limbs = new Float64Array(LIMBS);
  private pending = 0;

  add(hash: EntryHash): this {
    return this.move(hash, 1);
  }

  subtract(hash: EntryHash): this {
    return this.move(hash, -1);
  }

  copy(): SetSum {
    const other = new SetSum();
    other.limbs.set(this.limbs);
    other.pending = this.pending;
    return other;
  }

  /** 32 bytes, big-endian. */
  toBytes(): Buffer {
    this.carry();
    const bytes = Buffer.allocUnsafe(LIMBS * 4);
    for (let limb = 0; limb < LIMBS; limb++) bytes.writeUInt32BE(this.limbs[limb]!, limb * 4);
    return bytes;
  }

  /** Limbs are big-endian, the most significant first. */
  private move(hash: EntryHash, sign: 1 | -1): this {
    for (let limb = 0; limb < LIMBS; limb++) {
      const at = limb * 4;
      const high = hash.charCodeAt(at) * 2 ** 24 + (hash.charCodeAt(at + 1) << 16);
      this.limbs[limb]! += sign * (high + (hash.charCodeAt(at + 2) << 8) + hash.charCodeAt(at + 3));
    }
    if (++this.pending >= CARRY_EVERY) this.carry();
    return this;
  }

  private carry(): void {
    let carry = 0;
    for (let limb = LIMBS - 1; limb >= 0; limb--) {
      const value = this.limbs[limb]! + carry;
      carry = Math.floor(value / BASE);
      this.limbs[limb] = value - carry * BASE;
    }
    this.pending = 0;
  }
}
