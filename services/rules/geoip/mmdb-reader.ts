// Reads databases in MaxMind's format, version 2.0 (https://maxmind.github.io/MaxMind-DB/): the record of an address.

const MARKER = Buffer.from('\xab\xcd\xefMaxMind.com', 'latin1');
/** The marker is in the last 128 KiB. */
const MARKER_SPAN = 128 * 1024;
/** Between the tree and the data. */
const SEPARATOR = 16;
/** Deeper records are no records of addresses. */
const MAX_DEPTH = 16;

export type MmdbValue = string | number | bigint | boolean | MmdbValue[] | { [name: string]: MmdbValue } | null;

export class MmdbReader {
  readonly #file: Buffer;
  readonly #nodes: number;
  /** Of one pointer of a node. */
  readonly #bits: number;
  readonly #ipv4Root: number;
  readonly #version: number;
  readonly #data: Buffer;

  /** Throws for a file in another format. */
  constructor(file: Buffer) {
    const end = file.lastIndexOf(MARKER);
    if (end < 0 || end < file.length - MARKER_SPAN) throw new Error('the file is no MaxMind database');
    const about = new Decoder(file.subarray(end + MARKER.length)).value(0)[0] as Record<string, MmdbValue>;
    const [nodes, bits, version] = ['node_count', 'record_size', 'ip_version'].map((name) => Number(about[name]));
    if (!nodes || !bits || ![24, 28, 32].includes(bits)) throw new Error('the database has an unknown form');
    this.#file = file;
    this.#nodes = nodes;
    this.#bits = bits;
    this.#version = version ?? 6;
    const tree = (nodes * bits) / 4;
    this.#data = file.subarray(tree + SEPARATOR, end);
    this.#ipv4Root = this.#version === 6 ? this.#walk(0, Buffer.alloc(12)) : 0;
  }

  /** The record of an address of 4 or 16 bytes; null: there is none. */
  get(address: Uint8Array): MmdbValue {
    const short = address.length === 4;
    if (!short && this.#version === 4) return null;
    const found = this.#walk(short ? this.#ipv4Root : 0, address);
    if (found <= this.#nodes) return null;
    return new Decoder(this.#data).value(found - this.#nodes - SEPARATOR)[0];
  }

  /** The node or record that the bits lead to. */
  #walk(from: number, address: Uint8Array): number {
    let node = from;
    for (let bit = 0; bit < address.length * 8 && node < this.#nodes; bit++) {
      node = this.#pointer(node, (address[bit >> 3]! >> (7 - (bit & 7))) & 1);
    }
    return node;
  }

  #pointer(node: number, side: number): number {
    const at = (node * this.#bits) / 4;
    if (this.#bits === 24) return this.#file.readUIntBE(at + side * 3, 3);
    if (this.#bits === 32) return this.#file.readUInt32BE(at + side * 4);
    const middle = this.#file[at + 3]!;
    const high = side === 0 ? middle >> 4 : middle & 0xf;
    return high * 2 ** 24 + this.#file.readUIntBE(at + side * 4, 3);
  }
}

/** Values of a data section; pointers are offsets in it. */
class Decoder {
  readonly #data: Buffer;

  constructor(data: Buffer) {
    this.#data = data;
  }

  /** The value at an offset, and the offset behind it. */
  value(at: number, depth = 0): [value: MmdbValue, end: number] {
    if (depth > MAX_DEPTH) throw new Error('a record is nested too deeply');
    const control = this.#data.readUInt8(at);
    let type = control >> 5;
    if (type === 1) {
      const [target, end] = this.#pointer(control, at + 1);
      return [this.value(target, depth + 1)[0], end];
    }
    let next = at + 1;
    if (type === 0) type = 7 + this.#data.readUInt8(next++);
    let size = control & 0x1f;
    if (size >= 29) {
      const more = size - 28;
      size = [29, 285, 65_821][more - 1]! + this.#data.readUIntBE(next, more);
      next += more;
    }
    return this.#sized(type, size, next, depth);
  }

  #sized(type: number, size: number, at: number, depth: number): [MmdbValue, number] {
    const end = at + size;
    switch (type) {
      case 2:
        return [this.#data.toString('utf8', at, end), end];
      case 3:
        return [this.#data.readDoubleBE(at), end];
      case 7:
        return this.#map(size, at, depth);
      case 11:
        return this.#list(size, at, depth);
      case 14:
        return [size === 1, at];
      case 15:
        return [this.#data.readFloatBE(at), end];
      default:
        return [this.#integer(at, end), end];
    }
  }

  #map(size: number, from: number, depth: number): [MmdbValue, number] {
    const map: Record<string, MmdbValue> = {};
    let at = from;
    for (let index = 0; index < size; index++) {
      const [name, afterName] = this.value(at, depth + 1);
      const [value, end] = this.value(afterName, depth + 1);
      map[String(name)] = value;
      at = end;
    }
    return [map, at];
  }

  #list(size: number, from: number, depth: number): [MmdbValue, number] {
    const list: MmdbValue[] = [];
    let at = from;
    for (let index = 0; index < size; index++) {
      const [value, end] = this.value(at, depth + 1);
      list.push(value);
      at = end;
    }
    return [list, at];
  }

  #integer(at: number, end: number): number | bigint {
    let value = 0n;
    for (const byte of this.#data.subarray(at, end)) value = value * 256n + BigInt(byte);
    return value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value;
  }

  #pointer(control: number, at: number): [target: number, end: number] {
    const size = ((control >> 3) & 3) + 1;
    const low = this.#data.readUIntBE(at, size);
    const high = control & 7;
    const bases = [0, 2048, 526_336, 0];
    return [(size === 4 ? low : high * 2 ** (8 * size) + low) + bases[size - 1]!, at + size];
  }
}
