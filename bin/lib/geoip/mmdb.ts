// Writes databases in MaxMind's format, version 2.0 (https://maxmind.github.io/MaxMind-DB/).
import type { Network } from './ranges.ts';
import { SearchTree } from './search-tree.ts';

const MARKER = Buffer.from('\xab\xcd\xefMaxMind.com', 'latin1');

const POINTER = 1;
const TEXT = 2;
const UINT16 = 5;
const UINT32 = 6;
const MAP = 7;
const UINT64 = 9;
const ARRAY = 11;

export interface About {
  type: string;
  description: string;
  built: Date;
}

/** Texts, and whole numbers of at most 32 bits. */
export type Values = readonly (string | number)[];

export class MmdbWriter {
  private readonly tree = new SearchTree();
  private readonly data: Buffer[] = [];
  private readonly places: number[] = [];
  private readonly numbers = new Map<string, number>();
  private readonly fields: readonly string[];
  /** Where the name of each field is; only the first record has it in full. */
  private readonly namePlaces = new Map<string, number>();
  private bytes = 0;

  /** `fields` are the names of what every record holds. */
  constructor(fields: readonly string[]) {
    this.fields = fields;
  }

  /** `network` is of IPv6 addresses; IPv4 is below ::/96. Equal records are written once. */
  add(network: Network, values: Values): void {
    const key = JSON.stringify(values);
    let number = this.numbers.get(key);
    if (number === undefined) {
      number = this.places.length;
      this.numbers.set(key, number);
      this.places.push(this.bytes);
      this.append(head(MAP, this.fields.length));
      for (const [index, field] of this.fields.entries()) {
        this.appendName(field);
        this.append(encode(values[index]!));
      }
    }
    this.tree.add(network, number);
  }

  private append(bytes: Buffer): void {
    this.data.push(bytes);
    this.bytes += bytes.length;
  }

  private appendName(name: string): void {
    const place = this.namePlaces.get(name);
    if (place === undefined) {
      this.namePlaces.set(name, this.bytes);
      this.append(encode(name));
    } else {
      // Of eleven bits: the first record is shorter than that.
      this.append(Buffer.from([(POINTER << 5) | (place >> 8), place & 0xff]));
    }
  }

  file({ type, description, built }: About): Buffer {
    const pointerBits = this.tree.pointerBits(this.bytes);
    const about: [string, Buffer][] = [
      ['binary_format_major_version', integer(UINT16, 2)],
      ['binary_format_minor_version', integer(UINT16, 0)],
      ['build_epoch', integer(UINT64, Math.floor(built.getTime() / 1000))],
      ['database_type', encode(type)],
      ['description', Buffer.concat([head(MAP, 1), encode('en'), encode(description)])],
      ['ip_version', integer(UINT16, 6)],
      ['languages', head(ARRAY, 0)],
      ['node_count', integer(UINT32, this.tree.nodes)],
      ['record_size', integer(UINT16, pointerBits)],
    ];
    const metadata = about.flatMap(([name, value]) => [encode(name), value]);
    return Buffer.concat([
      this.tree.write(this.places, pointerBits),
      ...this.data,
      MARKER,
      head(MAP, about.length),
      ...metadata,
    ]);
  }
}

function encode(value: string | number): Buffer {
  if (typeof value === 'number') return integer(UINT32, value);
  const text = Buffer.from(value.toWellFormed());
  return Buffer.concat([head(TEXT, text.length), text]);
}

/** Big-endian without leading zeros. */
function integer(type: number, value: number): Buffer {
  const hex = value === 0 ? '' : value.toString(16);
  const bytes = Buffer.from(hex.padStart(hex.length + (hex.length % 2), '0'), 'hex');
  return Buffer.concat([head(type, bytes.length), bytes]);
}

/** What comes before a value: its type, and its size of less than 285. */
function head(type: number, size: number): Buffer {
  const extended = type > MAP;
  const first = extended ? 0 : type << 5;
  const rest = extended ? [type - MAP] : [];
  if (size < 29) return Buffer.from([first | size, ...rest]);
  if (size < 285) return Buffer.from([first | 29, ...rest, size - 29]);
  throw new RangeError(`a value of ${size} bytes is too long`);
}
