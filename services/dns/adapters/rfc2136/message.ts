// Messages of DNS as far as changes of a zone need them (RFC 1035, RFC 2136): an update of one TXT value, and what a server
// answers to it. Answers come from anywhere: what reads them reads no byte twice without getting on, and never beyond the end.

export const CLASS_IN = 1;
export const CLASS_NONE = 254;
export const CLASS_ANY = 255;
const TYPE_SOA = 6;
const TYPE_TXT = 16;
export const TYPE_TSIG = 250;
export const HEADER_BYTES = 12;
const OPCODE_UPDATE = 5;
const MAX_NAME_BYTES = 255;
/** Records of one answer that are read. */
const MAX_RECORDS = 64;

export interface Update {
  id: number;
  zone: string;
  name: string;
  value: string;
  /** Adds the value for so many seconds; null removes it. */
  ttl: number | null;
}

/** Bytes that are no message, or more than anybody needs. */
export class MessageInvalid extends Error {}

export function encodeUpdate({ id, zone, name, value, ttl }: Update): Buffer {
  const text = Buffer.from(value, 'latin1');
  if (text.length > 255) throw new RangeError('a TXT value of this length is not from this console');
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt16BE(id, 0);
  header.writeUInt16BE(OPCODE_UPDATE << 11, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(1, 8);
  const fixed = Buffer.alloc(10);
  fixed.writeUInt16BE(TYPE_TXT, 0);
  fixed.writeUInt16BE(ttl === null ? CLASS_NONE : CLASS_IN, 2);
  fixed.writeUInt32BE(ttl ?? 0, 4);
  fixed.writeUInt16BE(text.length + 1, 8);
  const ofZone = Buffer.of(0, TYPE_SOA, 0, CLASS_IN);
  return Buffer.concat([header, encodeName(zone), ofZone, encodeName(name), fixed, Buffer.of(text.length), text]);
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
  /** Where its data begins and ends. */
  data: number;
  end: number;
}

export interface UpdateAnswer {
  id: number;
  /** 0: done. */
  rcode: number;
  additional: number;
  /** The last record, which alone may sign the message; null without records. */
  last: AnswerRecord | null;
}

/** Throws {@link MessageInvalid}. */
export function readUpdateAnswer(message: Buffer): UpdateAnswer {
  if (message.length < HEADER_BYTES) throw new MessageInvalid();
  const flags = message.readUInt16BE(2);
  if (flags >> 15 !== 1 || ((flags >> 11) & 15) !== OPCODE_UPDATE) throw new MessageInvalid();
  const questions = message.readUInt16BE(4);
  const additional = message.readUInt16BE(10);
  const records = message.readUInt16BE(6) + message.readUInt16BE(8) + additional;
  if (questions > 1 || records > MAX_RECORDS) throw new MessageInvalid();
  let at = HEADER_BYTES;
  if (questions === 1) at = readName(message, at).end + 4;
  let last: AnswerRecord | null = null;
  for (let left = records; left > 0; left--) {
    last = readRecord(message, at);
    at = last.end;
  }
  if (at !== message.length) throw new MessageInvalid();
  return { id: message.readUInt16BE(0), rcode: flags & 15, additional, last };
}

function readRecord(message: Buffer, start: number): AnswerRecord {
  const { name, end: fixed } = readName(message, start);
  if (fixed + 10 > message.length) throw new MessageInvalid();
  const data = fixed + 10;
  const end = data + message.readUInt16BE(fixed + 8);
  if (end > message.length) throw new MessageInvalid();
  return { start, name, type: message.readUInt16BE(fixed), data, end };
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
