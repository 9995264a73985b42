// One drain of the data plane as a file: its batches, deflated and framed each on its own, so that damage costs only what it
// hit. What must be known without reading stands in the name, which a rename makes true with the content.
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  ReportStatsRequestSchema,
  type SiteMinute,
  SiteMinuteSchema,
  type StatsGap,
  StatsGapSchema,
} from '../../../proto/gen/svc/node/v1/node_pb.js';
import { crc32c } from '../../kit/crc32c.ts';

export const MAX_BATCH_MINUTES = 1000;
/** Of a batch as it is sent, bytes; what the message says beside minutes and gaps is within the rest of 256 KiB. */
export const MAX_BATCH_BYTES = 240 * 1024;
const MAX_INFLATED_BYTES = 4 * 1024 * 1024;
const HEADER_BYTES = 8;
const NAME = /^(\d{1,19})-(\d{1,19})\.(\d{1,12})-(\d{1,12})\.(\d{1,12})\.(\d{1,20})\.batches$/;

/** What a node counted between two drains, or a part of it. */
export interface BatchContent {
  minutes: SiteMinute[];
  gaps: StatsGap[];
}

export interface BatchFile {
  name: string;
  /** Numbers of its batches, counted by this spool. */
  first: bigint;
  last: bigint;
  /** What it counts lies in this time, Unix seconds. */
  from: number;
  to: number;
  /** Unix seconds: with this file everything before was counted. */
  completeUntil: number;
  /** The data plane's number of the drain. */
  drained: bigint;
  /** On disk. */
  bytes: number;
}

/** The name of a file that says this of itself. */
export function batchFileName(file: Omit<BatchFile, 'name' | 'bytes'>): string {
  const { first, last, from, to, completeUntil, drained } = file;
  return `${first}-${last}.${from}-${to}.${completeUntil}.${drained}.batches`;
}

/** What a name says; undefined for a name of something else. */
export function readBatchFileName(name: string): Omit<BatchFile, 'bytes'> | undefined {
  const match = NAME.exec(name);
  if (!match) return undefined;
  const [, first, last, from, to, completeUntil, drained] = match as unknown as string[];
  const file = {
    name,
    first: BigInt(first!),
    last: BigInt(last!),
    from: Number(from),
    to: Number(to),
    completeUntil: Number(completeUntil),
    drained: BigInt(drained!),
  };
  return file.first > 0n && file.first <= file.last ? file : undefined;
}

/** Cuts what was drained into batches, by rows and by bytes. The first has all gaps; there is always one. */
export function cutBatches(minutes: readonly SiteMinute[], gaps: readonly StatsGap[]): BatchContent[] {
  let batch: BatchContent = { minutes: [], gaps: [...gaps] };
  const batches = [batch];
  let bytes = gaps.length * 24;
  for (const minute of minutes) {
    // Tag and length of the field come with each row.
    const size = toBinary(SiteMinuteSchema, minute).length + 6;
    if (batch.minutes.length > 0 && (batch.minutes.length >= MAX_BATCH_MINUTES || bytes + size > MAX_BATCH_BYTES)) {
      batch = { minutes: [], gaps: [] };
      batches.push(batch);
      bytes = 0;
    }
    batch.minutes.push(minute);
    bytes += size;
  }
  return batches;
}

/** The content of a file. */
export function encodeBatches(batches: readonly BatchContent[]): Uint8Array {
  return Buffer.concat(
    batches.map(({ minutes, gaps }) => {
      const message = create(ReportStatsRequestSchema, { minutes, gaps });
      const payload = deflateRawSync(toBinary(ReportStatsRequestSchema, message), { level: 6 });
      const header = Buffer.allocUnsafe(HEADER_BYTES);
      header.writeUInt32LE(payload.length, 0);
      header.writeUInt32LE(crc32c(payload), 4);
      return Buffer.concat([header, payload]);
    }),
  );
}

/** The batch at `index` of a file's content; undefined where it cannot be read. Never throws. */
export function decodeBatch(content: Uint8Array, index: number): BatchContent | undefined {
  const bytes = Buffer.from(content.buffer, content.byteOffset, content.byteLength);
  let at = 0;
  for (let skipped = 0; at + HEADER_BYTES <= bytes.length; skipped++) {
    const end = at + HEADER_BYTES + bytes.readUInt32LE(at);
    if (end > bytes.length) return undefined;
    if (skipped === index) {
      const payload = bytes.subarray(at + HEADER_BYTES, end);
      return crc32c(payload) === bytes.readUInt32LE(at + 4) ? inflate(payload) : undefined;
    }
    at = end;
  }
  return undefined;
}

function inflate(payload: Uint8Array): BatchContent | undefined {
  try {
    const message = inflateRawSync(payload, { maxOutputLength: MAX_INFLATED_BYTES });
    const { minutes, gaps } = fromBinary(ReportStatsRequestSchema, message);
    return { minutes, gaps };
  } catch {
    return undefined;
  }
}

/** A time of which something is missing, Unix seconds. */
export function gap(from: number, to: number): StatsGap {
  return create(StatsGapSchema, { from: BigInt(from), to: BigInt(to) });
}
