// Messages of DNS as far as reading and changing a zone needs them (RFC 1035, RFC 2136, RFC 5936): updates, queries, and what
// a server answers to them. Answers come from anywhere: what reads them reads no byte twice without getting on, and never beyond the end.

export const CLASS_IN = 1;
export const CLASS_NONE = 254;
export const CLASS_ANY = 255;
export const TYPE_SOA = 6;
export const TYPE_AXFR = 252;
export const TYPE_TSIG = 250;
export const HEADER_BYTES = 12;
const OPCODE_UPDATE = 5;
const MAX_NAME_BYTES = 255;
/** Records of one answer that are read. */
const MAX_UPDATE_RECORDS = 64;
/** More do not fit into 64 KiB. */
const MAX_QUERY_RECORDS = 6_000;

/** One record of a section of an update. */
export interface UpdateRecord {
  name: string;
  type: number;
  /** {@link CLASS_IN}: there or added; {@link CLASS_NONE}: not there or this value removed; {@link CLASS_ANY}: the set. */
  class: number;
  ttl: number;
  data: Buffer;
}

export interface Update {
  id: number;
  zone: string;
  /** What has to be so, or nothing is changed. */
  prerequisites: readonly UpdateRecord[];
  /** Made in their order, all or none. */
  changes: readonly UpdateRecord[];
}

/** Bytes that are no message, or more than anybody needs. */
export class MessageInvalid extends Error {}

export function encodeUpdate({ id, zone, prerequisites, changes }: Update): Buffer {
  const header = headerOf(id, OPCODE_UPDATE << 11);
  header.writeUInt16BE(prerequisites.length, 6);
  header.writeUInt16BE(changes.length, 8);
  const records = [...prerequisites, ...changes].map(encodeRecord);
  return Buffer.concat([header, encodeName(zone), uint16s(TYPE_SOA, CLASS_IN), ...records]);
}

/** A question for an authoritative server. */
export function encodeQuery(id: number, name: string, type: number): Buffer {
  return Buffer.concat([headerOf(id, 0), encodeName(name), uint16s(type, CLASS_IN)]);
}

function headerOf(id: number, flags: number): Buffer {
  return Buffer.concat([uint16s(id, flags, 1), Buffer.alloc(6)]);
}

export function encodeRecord(record: UpdateRecord): Buffer {
  const ttl = Buffer.alloc(4);
  ttl.writeUInt32BE(record.ttl);
  const fixed = uint16s(record.type, record.class);
  return Buffer.concat([encodeName(record.name), fixed, ttl, uint16s(record.data.length), record.data]);
}

function uint16s(...values: number[]): Buffer {
  const bytes = Buffer.alloc(2 * values.length);
  values.forEach((value, index) => {
    bytes.writeUInt16BE(value, 2 * index);
  });
  return bytes;
}

/** Without compression, in lower case. */
export function encodeName(name: string): Buffer {
  const parts: Buffer[] = [];
  for (const label of name.toLowerCase().split('.')) {
    const bytes = Buffer.from(label, 'latin1');
    if (bytes.length === 0 || bytes.length > 63) throw new RangeError(`not a valid record name: ${name}`);
    parts.push(Buffer.of(bytes.length), bytes);
  }
  const encoded = Buffer.concat([...parts, Buffer.of(0)]);
  if (encoded.length > MAX_NAME_BYTES) throw new RangeError(`not a valid record name: ${name}`);
  return encoded;
}

export interface AnswerRecord {
  /** Where it begins. */
  start: number;
  name: string;
  type: number;
  ttl: number;
  /** Where its data begins and ends. */
  data: number;
  end: number;
}

export interface DnsAnswer {
  id: number;
  /** 0: done. */
  rcode: number;
  additional: number;
  /** Of the answer section. */
  answers: AnswerRecord[];
  /** The last record, which alone may sign the message; null without records. */
  last: AnswerRecord | null;
}

/** Throws {@link MessageInvalid}. */
export function readUpdateAnswer(message: Buffer): DnsAnswer {
  return readAnswer(message, OPCODE_UPDATE, MAX_UPDATE_RECORDS);
}

/** Of a query, or one message of the answer to a transfer. Throws {@link MessageInvalid}. */
export function readQueryAnswer(message: Buffer): DnsAnswer {
  return readAnswer(message, 0, MAX_QUERY_RECORDS);
}

function readAnswer(message: Buffer, opcode: number, maxRecords: number): DnsAnswer {
  if (message.length < HEADER_BYTES) throw new MessageInvalid();
  const flags = message.readUInt16BE(2);
  if (flags >> 15 !== 1 || ((flags >> 11) & 15) !== opcode) throw new MessageInvalid();
  const questions = message.readUInt16BE(4);
  const inAnswer = message.readUInt16BE(6);
  const additional = message.readUInt16BE(10);
  const records = inAnswer + message.readUInt16BE(8) + additional;
  if (questions > 1 || records > maxRecords) throw new MessageInvalid();
  let at = HEADER_BYTES;
  if (questions === 1) at = readName(message, at).end + 4;
  const answers: AnswerRecord[] = [];
  let last: AnswerRecord | null = null;
  for (let index = 0; index < records; index++) {
    last = readRecord(message, at);
    if (index < inAnswer) answers.push(last);
    at = last.end;
  }
  if (at !== message.length) throw new MessageInvalid();
  return { id: message.readUInt16BE(0), rcode: flags & 15, additional, answers, last };
}

function readRecord(message: Buffer, start: number): AnswerRecord {
  const { name, end: fixed } = readName(message, start);
  if (fixed + 10 > message.length) throw new MessageInvalid();
  const data = fixed + 10;
  const end = data + message.readUInt16BE(fixed + 8);
  if (end > message.length) throw new MessageInvalid();
  const ttl = message.readUInt32BE(fixed + 4);
  return { start, name, type: message.readUInt16BE(fixed), ttl, data, end };
}

/** A name and where what follows it begins. Throws {@link MessageInvalid}. */
export function readName(message: Buffer, start: number): { name: string; end: number } {
  const labels: string[] = [];
  let at = start;
  let end: number | null = null;
  for (let bytes = 1; ; ) {
    const length = message[at];
    if (length === undefined) throw new MessageInvalid();
    if (length === 0) return { name: labels.join('.'), end: end ?? at + 1 };
    if (length >= 0xc0) {
      const low = message[at + 1];
      const to = low === undefined ? at : ((length & 0x3f) << 8) | low;
      // A name goes on in front of itself alone, so that it ends.
      if (to >= at) throw new MessageInvalid();
      end ??= at + 2;
      at = to;
      continue;
    }
    bytes += length + 1;
    if (length > 63 || bytes > MAX_NAME_BYTES || at + 1 + length > message.length) throw new MessageInvalid();
    labels.push(message.toString('latin1', at + 1, at + 1 + length).toLowerCase());
    at += 1 + length;
  }
}
