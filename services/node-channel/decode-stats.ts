// Reads batches of counts. A thousand nodes send a million rows a minute, each with thirty numbers, most of them small:
// the general decoder, and any that makes an object or a bigint of each, take more time than all else that is done with
// them.
const VARINT = 0;
const FIXED_64 = 1;
const LENGTH = 2;
const FIXED_32 = 5;
const MAX_VARINT_BYTES = 10;

/** Numbers are exact below 2^53, which is beyond what one of them may be; negative times come as far ahead. */
export interface CodedReport {
  sequence: bigint;
  firstHeld: bigint;
  /** Unix seconds; 0: not told. */
  completeUntil: number;
  gaps: CodedGap[];
  minutes: CodedMinute[];
  /** In one piece, which the collector does not look into. */
  numbers: Float64Array;
}

/** Unix seconds. */
export interface CodedGap {
  from: number;
  to: number;
}

/** Counts of one site in one minute; those of which there are several are in `numbers` of the report. */
export interface CodedMinute {
  siteId: string;
  /** Unix seconds. */
  minute: number;
  requests: number;
  bytesSent: number;
  bytesReceived: number;
  cacheHits: number;
  cacheMisses: number;
  cacheHitBytes: number;
  /** Where its numbers begin: each status before its count, then the counts of the names, then the buckets of latency. */
  at: number;
  statuses: number;
  names: readonly string[];
  latency: number;
  rules: readonly CodedRule[];
  tops: readonly CodedTop[];
}

/** What became of requests under one rule. */
export interface CodedRule {
  ruleId: string;
  platform: boolean;
  /** As RuleEvent of the messages has it. */
  event: number;
  count: number;
}

/** One entry of a list of what came most. */
export interface CodedTop {
  /** As TopList of the messages has it. */
  list: number;
  key: string;
  requests: number;
  bytesSent: number;
}

const NO_NAMES: readonly string[] = [];
export const NO_RULES: readonly CodedRule[] = [];
export const NO_TOPS: readonly CodedTop[] = [];
const FIRST_NUMBERS = 1 << 12;

/** A place in the bytes of a message. */
class Reader {
  readonly #bytes: Buffer;
  at: number;
  end: number;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.at = 0;
    this.end = bytes.byteLength;
  }

  /** An unsigned number of 64 bits, rounded from 2^53 on. */
  number(): number {
    const bytes = this.#bytes;
    let low = 0;
    for (let shift = 0; shift < 28; shift += 7) {
      const byte = this.#next();
      low |= (byte & 0x7f) << shift;
      if (byte < 0x80) return low;
    }
    // Two parts that are exact: their sum is rounded once, as that of the general decoder.
    let value = low;
    let high = 0;
    for (let index = 4; index < MAX_VARINT_BYTES; index++) {
      if (this.at >= this.end) break;
      const byte = bytes[this.at++]!;
      // Of the last byte one bit is in the 64.
      const bits = index < MAX_VARINT_BYTES - 1 ? byte & 0x7f : byte & 1;
      if (index < 7) value += bits * 2 ** (7 * index);
      else high += bits * 2 ** (7 * index);
      if (byte < 0x80) return value + high;
    }
    throw new RangeError('unterminated number');
  }

  /** An unsigned number of 64 bits. */
  exact(): bigint {
    let value = 0n;
    for (let index = 0; index < MAX_VARINT_BYTES; index++) {
      const byte = this.#next();
      value |= BigInt(byte & 0x7f) << BigInt(7 * index);
      if (byte < 0x80) return BigInt.asUintN(64, value);
    }
    throw new RangeError('unterminated number');
  }

  /** A number of 32 bits, as which longer ones are cut. */
  small(): number {
    let value = 0;
    for (let index = 0; index < MAX_VARINT_BYTES; index++) {
      const byte = this.#next();
      if (index < 5) value |= (byte & 0x7f) << (7 * index);
      if (byte < 0x80) return value >>> 0;
    }
    throw new RangeError('unterminated number');
  }

  text(): string {
    const { at, end } = this.#span();
    this.at = end;
    return this.#bytes.toString('utf8', at, end);
  }

  /** Reads a message inside this one: `field` gets each number and kind, and reads or skips it. */
  inner(field: Field): void {
    const outer = this.end;
    this.end = this.#span().end;
    this.fields(field);
    this.end = outer;
  }

  fields(field: Field): void {
    while (this.at < this.end) {
      const tag = this.small();
      const before = this.at;
      if (tag >>> 3 === 0) throw new RangeError('field without a number');
      field(tag >>> 3, tag & 7);
      // Whoever read nothing did not know it.
      if (this.at === before) this.#skip(tag & 7);
    }
  }

  /** Appends the numbers of a packed field. */
  packed(to: number[]): void {
    const outer = this.end;
    this.end = this.#span().end;
    while (this.at < this.end) to.push(this.number());
    this.end = outer;
  }

  #next(): number {
    if (this.at >= this.end) throw new RangeError('message ends inside a number');
    return this.#bytes[this.at++]!;
  }

  #span(): { at: number; end: number } {
    const length = this.small();
    const end = this.at + length;
    if (end > this.end) throw new RangeError('message ends inside a field');
    return { at: this.at, end };
  }

  #skip(kind: number): void {
    if (kind === VARINT) this.number();
    else if (kind === LENGTH) this.at = this.#span().end;
    else if (kind === FIXED_64) this.at += 8;
    else if (kind === FIXED_32) this.at += 4;
    else throw new RangeError('unsupported field type');
    if (this.at > this.end) throw new RangeError('message ends inside a field');
  }
}

type Field = (number: number, kind: number) => void;

/** Says what fromBinary answers, without what it does not know. Throws RangeError for what is no message. */
export function decodeReportStats(bytes: Uint8Array): CodedReport {
  const reader = new Reader(bytes);
  const minutes = new MinuteReader(reader);
  const report = { sequence: 0n, firstHeld: 0n, completeUntil: 0, gaps: [] as CodedGap[] };
  const rows: CodedMinute[] = [];
  reader.fields((number, kind) => {
    if (kind === VARINT) {
      if (number === 1) report.sequence = reader.exact();
      else if (number === 3) report.completeUntil = reader.number();
      else if (number === 5) report.firstHeld = reader.exact();
    } else if (kind === LENGTH) {
      if (number === 2) rows.push(minutes.read());
      else if (number === 4) report.gaps.push(readGap(reader));
    }
  });
  return { ...report, minutes: rows, numbers: minutes.numbers() };
}

function readGap(reader: Reader): CodedGap {
  const gap: CodedGap = { from: 0, to: 0 };
  reader.inner((number, kind) => {
    if (kind !== VARINT) return;
    if (number === 1) gap.from = reader.number();
    else if (number === 2) gap.to = reader.number();
  });
  return gap;
}

/** Reads the minutes of a message one after the other, with functions and lists that are made once. */
class MinuteReader {
  readonly #reader: Reader;
  #row: CodedMinute = emptyMinute();
  readonly #statuses: number[] = [];
  readonly #names: string[] = [];
  readonly #counts: number[] = [];
  readonly #latency: number[] = [];
  #rules: CodedRule[] = [];
  #tops: CodedTop[] = [];
  #numbers = new Float64Array(FIRST_NUMBERS);
  #used = 0;

  constructor(reader: Reader) {
    this.#reader = reader;
  }

  read(): CodedMinute {
    for (const list of [this.#statuses, this.#names, this.#counts, this.#latency]) list.length = 0;
    const row = emptyMinute();
    this.#row = row;
    this.#reader.inner(this.#field);
    row.at = this.#used;
    row.statuses = this.#statuses.length / 2;
    row.latency = this.#latency.length;
    if (this.#names.length > 0) row.names = this.#names.slice();
    if (this.#rules.length > 0) {
      row.rules = this.#rules;
      this.#rules = [];
    }
    if (this.#tops.length > 0) {
      row.tops = this.#tops;
      this.#tops = [];
    }
    for (const list of [this.#statuses, this.#counts, this.#latency]) this.#keep(list);
    return row;
  }

  /** Of all that was read. */
  numbers(): Float64Array {
    return this.#numbers.slice(0, this.#used);
  }

  #keep(list: readonly number[]): void {
    const end = this.#used + list.length;
    if (end > this.#numbers.length) {
      const more = new Float64Array(2 * end);
      more.set(this.#numbers);
      this.#numbers = more;
    }
    for (let index = 0; index < list.length; index++) this.#numbers[this.#used + index] = list[index]!;
    this.#used = end;
  }

  readonly #field: Field = (number, kind) => {
    const reader = this.#reader;
    const row = this.#row;
    if (kind === VARINT) {
      if (number === 2) row.minute = reader.number();
      else if (number === 3) row.requests = reader.number();
      else if (number === 4) row.bytesSent = reader.number();
      else if (number === 5) row.bytesReceived = reader.number();
      else if (number === 8) this.#latency.push(reader.number());
      else if (number === 10) row.cacheHits = reader.number();
      else if (number === 11) row.cacheMisses = reader.number();
      else if (number === 12) row.cacheHitBytes = reader.number();
    } else if (kind === LENGTH) {
      if (number === 1) row.siteId = reader.text();
      else if (number === 6) {
        this.#statuses.push(0, 0);
        reader.inner(this.#status);
      } else if (number === 7) {
        this.#names.push('');
        this.#counts.push(0);
        reader.inner(this.#named);
      } else if (number === 8) reader.packed(this.#latency);
      else if (number === 9) {
        this.#rules.push({ ruleId: '', platform: false, event: 0, count: 0 });
        reader.inner(this.#rule);
      } else if (number === 13) {
        this.#tops.push({ list: 0, key: '', requests: 0, bytesSent: 0 });
        reader.inner(this.#top);
      }
    }
  };

  readonly #status: Field = (number, kind) => {
    if (kind !== VARINT) return;
    const { length } = this.#statuses;
    if (number === 1) this.#statuses[length - 2] = this.#reader.small();
    else if (number === 2) this.#statuses[length - 1] = this.#reader.number();
  };

  readonly #rule: Field = (number, kind) => {
    const rule = this.#rules.at(-1)!;
    if (number === 1 && kind === LENGTH) rule.ruleId = this.#reader.text();
    else if (kind !== VARINT) return;
    else if (number === 2) rule.platform = this.#reader.number() !== 0;
    else if (number === 3) rule.event = this.#reader.small();
    else if (number === 4) rule.count = this.#reader.number();
  };

  readonly #top: Field = (number, kind) => {
    const top = this.#tops.at(-1)!;
    if (number === 2 && kind === LENGTH) top.key = this.#reader.text();
    else if (kind !== VARINT) return;
    else if (number === 1) top.list = this.#reader.small();
    else if (number === 3) top.requests = this.#reader.number();
    else if (number === 4) top.bytesSent = this.#reader.number();
  };

  readonly #named: Field = (number, kind) => {
    if (number === 1 && kind === LENGTH) this.#names[this.#names.length - 1] = this.#reader.text();
    else if (number === 2 && kind === VARINT) this.#counts[this.#counts.length - 1] = this.#reader.number();
  };
}

function emptyMinute(): CodedMinute {
  const none = { requests: 0, bytesSent: 0, bytesReceived: 0, cacheHits: 0, cacheMisses: 0, cacheHitBytes: 0 };
  return {
    siteId: '',
    minute: 0,
    ...none,
    at: 0,
    statuses: 0,
    names: NO_NAMES,
    latency: 0,
    rules: NO_RULES,
    tops: NO_TOPS,
  };
}
