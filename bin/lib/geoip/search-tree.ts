// The search tree of a database in MaxMind's format: over the bits of IPv6 addresses, with IPv4 below ::/96.
import type { Network } from './ranges.ts';

/** Between the tree and the records. */
const SEPARATOR = Buffer.alloc(16);

export class SearchTree {
  /** Of each node: 0 for nothing, the number of a node, or that of a record as -1 - number. The root is node 0. */
  private children = new Int32Array(1 << 16);
  private count = 1;
  private readonly words = new Uint32Array(4);

  /** Throws when the network holds, or lies in, one that was added before. */
  add({ address, bits }: Network, record: number): void {
    for (let word = 0; word < 4; word++) this.words[word] = Number((address >> BigInt(96 - 32 * word)) & 0xffff_ffffn);
    let node = 0;
    for (let level = 0; level < bits - 1; level++) node = this.child(2 * node + this.bit(level), address);
    const slot = 2 * node + this.bit(bits - 1);
    if (this.children[slot] !== 0) throw new RangeError(`two records for ${address}`);
    this.children[slot] = -1 - record;
  }

  private bit(level: number): number {
    return (this.words[level >> 5]! >>> (31 - (level & 31))) & 1;
  }

  private child(slot: number, address: bigint): number {
    const next = this.children[slot]!;
    if (next < 0) throw new RangeError(`two records for ${address}`);
    if (next > 0) return next;
    if (2 * this.count === this.children.length) {
      const larger = new Int32Array(2 * this.children.length);
      larger.set(this.children);
      this.children = larger;
    }
    this.children[slot] = this.count;
    return this.count++;
  }

  get nodes(): number {
    return this.count;
  }

  /** The bits of a pointer in a file with records of so many bytes. */
  pointerBits(recordBytes: number): 24 | 32 {
    return this.count + SEPARATOR.length + recordBytes < 2 ** 24 ? 24 : 32;
  }

  /** The tree as it is written; `places` are where the records lie, in bytes from the first. */
  write(places: readonly number[], pointerBits: 24 | 32): Buffer {
    const size = pointerBits / 8;
    const tree = Buffer.alloc(2 * size * this.count);
    for (let slot = 0; slot < 2 * this.count; slot++) {
      const child = this.children[slot]!;
      const beyond = child === 0 ? 0 : SEPARATOR.length + places[-1 - child]!;
      tree.writeUIntBE(child > 0 ? child : this.count + beyond, slot * size, size);
    }
    return Buffer.concat([tree, SEPARATOR]);
  }
}
