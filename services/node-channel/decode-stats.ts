// Reads batches of counts. A thousand nodes send a million rows a minute, each with thirty numbers, most of them small:
// the general decoder took half of the time of all that is done with them.
import { create } from '@bufbuild/protobuf';
import {
  type NamedCount,
  NamedCountSchema,
  type ReportStatsRequest,
  ReportStatsRequestSchema,
  type SiteMinute,
  SiteMinuteSchema,
  type StatsGap,
  StatsGapSchema,
  type StatusCount,
  StatusCountSchema,
} from '../../proto/gen/svc/node/v1/node_pb.js';

const VARINT = 0;
const FIXED_64 = 1;
const LENGTH = 2;
const FIXED_32 = 5;
const MAX_VARINT_BYTES = 10;
/** Made once: hundreds of thousands a second that live until they are stored would keep the collector busy. */
const SMALL = Array.from({ length: 1 << 14 }, (_, value) => BigInt(value));

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

  /** An unsigned number of 64 bits. */
  unsigned(): bigint {
    const bytes = this.#bytes;
    const first = this.#next();
    if (first < 0x80) return SMALL[first]!;
    const second = this.#next();
    let small = (first & 0x7f) | ((second & 0x7f) << 7);
    if (second < 0x80) return SMALL[small]!;
    for (let shift = 14; shift < 28; shift += 7) {
      const byte = this.#next();
      small |= (byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt(small);
    }
    let value = BigInt(small);
    for (let index = 4; index < MAX_VARINT_BYTES; index++) {
      if (this.at >= this.end) break;
      const byte = bytes[this.at++]!;
      value |= BigInt(byte & 0x7f) << BigInt(7 * index);
      if (byte < 0x80) return BigInt.asUintN(64, value);
    }
    throw new RangeError('a number does not end');
  }

  signed(): bigint {
    return BigInt.asIntN(64, this.unsigned());
  }

  /** A number of 32 bits, as which longer ones are cut. */
  small(): number {
    return Number(BigInt.asUintN(32, this.unsigned()));
  }

  text(): string {
    const { at, end } = this.#span();
    this.at = end;
    return this.#bytes.toString('utf8', at, end);
  }

  /** Reads a message inside this one: `field` gets each number and kind, and reads or skips it. */
  inner(field: (number: number, kind: number) => void): void {
    const outer = this.end;
    this.end = this.#span().end;
    this.fields(field);
    this.end = outer;
  }

  fields(field: (number: number, kind: number) => void): void {
    while (this.at < this.end) {
      const tag = this.small();
      const before = this.at;
      if (tag >>> 3 === 0) throw new RangeError('a field has no number');
      field(tag >>> 3, tag & 7);
      // Whoever read nothing did not know it.
      if (this.at === before) this.#skip(tag & 7);
    }
  }

  packed(read: () => void): void {
    const outer = this.end;
    this.end = this.#span().end;
    while (this.at < this.end) read();
    this.end = outer;
  }

  #next(): number {
    if (this.at >= this.end) throw new RangeError('the message ends in a number');
    return this.#bytes[this.at++]!;
  }

  #span(): { at: number; end: number } {
    const length = this.small();
    const end = this.at + length;
    if (end > this.end) throw new RangeError('the message ends in a field');
    return { at: this.at, end };
  }

  #skip(kind: number): void {
    if (kind === VARINT) this.unsigned();
    else if (kind === LENGTH) this.at = this.#span().end;
    else if (kind === FIXED_64) this.at += 8;
    else if (kind === FIXED_32) this.at += 4;
    else throw new RangeError('a field of a kind that is not used');
    if (this.at > this.end) throw new RangeError('the message ends in a field');
  }
}

/** The same as fromBinary answers, without what it does not know. Throws RangeError for what is no message. */
export function decodeReportStats(bytes: Uint8Array): ReportStatsRequest {
  const reader = new Reader(bytes);
  const request = create(ReportStatsRequestSchema);
  reader.fields((number, kind) => {
    if (kind === VARINT) {
      if (number === 1) request.sequence = reader.unsigned();
      else if (number === 3) request.completeUntil = reader.signed();
      else if (number === 5) request.firstHeld = reader.unsigned();
    } else if (kind === LENGTH) {
      if (number === 2) request.minutes.push(readMinute(reader));
      else if (number === 4) request.gaps.push(readGap(reader));
    }
  });
  return request;
}

const minutes = create(SiteMinuteSchema);
const statuses = create(StatusCountSchema);
const names = create(NamedCountSchema);
const gaps = create(StatsGapSchema);

function readMinute(reader: Reader): SiteMinute {
  const row: SiteMinute = { ...minutes, statuses: [], counts: [], latency: [] };
  const bucket = () => row.latency.push(reader.unsigned());
  reader.inner((number, kind) => {
    if (kind === VARINT) {
      if (number === 2) row.minute = reader.signed();
      else if (number === 3) row.requests = reader.unsigned();
      else if (number === 4) row.bytesSent = reader.unsigned();
      else if (number === 5) row.bytesReceived = reader.unsigned();
      else if (number === 8) bucket();
    } else if (kind === LENGTH) {
      if (number === 1) row.siteId = reader.text();
      else if (number === 6) row.statuses.push(readStatus(reader));
      else if (number === 7) row.counts.push(readName(reader));
      else if (number === 8) reader.packed(bucket);
    }
  });
  return row;
}

function readStatus(reader: Reader): StatusCount {
  const status: StatusCount = { ...statuses };
  reader.inner((number, kind) => {
    if (kind !== VARINT) return;
    if (number === 1) status.code = reader.small();
    else if (number === 2) status.count = reader.unsigned();
  });
  return status;
}

function readName(reader: Reader): NamedCount {
  const named: NamedCount = { ...names };
  reader.inner((number, kind) => {
    if (number === 1 && kind === LENGTH) named.name = reader.text();
    else if (number === 2 && kind === VARINT) named.count = reader.unsigned();
  });
  return named;
}

function readGap(reader: Reader): StatsGap {
  const gap: StatsGap = { ...gaps };
  reader.inner((number, kind) => {
    if (kind !== VARINT) return;
    if (number === 1) gap.from = reader.signed();
    else if (number === 2) gap.to = reader.signed();
  });
  return gap;
}
