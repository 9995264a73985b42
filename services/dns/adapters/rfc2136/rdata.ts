// Data of records between the bytes of a message and the text that adapters have.
import { isIPv4, isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';
import { AdapterError, type RecordType } from '../adapter.ts';
import { canonicalName } from '../kit/values.ts';
import { type AnswerRecord, encodeName, MessageInvalid, readName } from './message.ts';

const CODES: Readonly<Record<string, number>> = {
  A: 1,
  NS: 2,
  CNAME: 5,
  SOA: 6,
  PTR: 12,
  MX: 15,
  TXT: 16,
  AAAA: 28,
  SRV: 33,
  DNAME: 39,
  DS: 43,
  RRSIG: 46,
  NSEC: 47,
  DNSKEY: 48,
  NSEC3: 50,
  NSEC3PARAM: 51,
  TLSA: 52,
  SVCB: 64,
  HTTPS: 65,
  CAA: 257,
};
const NAMES = new Map(Object.entries(CODES).map(([name, code]) => [code, name]));
const MAX_STRING_BYTES = 255;

export function typeCode(type: string): number {
  const code = CODES[type] ?? Number(/^TYPE([0-9]{1,5})$/.exec(type)?.[1] ?? 'none');
  if (!(code <= 65_535)) throw new AdapterError('invalid', `the record type ${type} is unknown`);
  return code;
}

/** `TYPE64000` for one without a name here. */
export function typeName(code: number): string {
  return NAMES.get(code) ?? `TYPE${code}`;
}

/** Throws {@link AdapterError}, `invalid`. */
export function encodeData(type: RecordType, value: string): Buffer {
  switch (type) {
    case 'A':
      if (!isIPv4(value)) break;
      return Buffer.from(ipaddr.parse(value).toByteArray());
    case 'AAAA':
      if (!isIPv6(value)) break;
      return Buffer.from(ipaddr.parse(value).toByteArray());
    case 'CNAME':
      return encodeChecked(value);
    case 'TXT':
      return encodeStrings(value);
  }
  throw new AdapterError('invalid', `${value} is no value of a record of type ${type}`);
}

/** Throws {@link AdapterError}, `invalid`. */
export function encodeChecked(name: string): Buffer {
  try {
    return encodeName(name);
  } catch (error) {
    throw new AdapterError('invalid', `${name} is no name of a record`, { cause: error });
  }
}

function encodeStrings(value: string): Buffer {
  const bytes = Buffer.from(value);
  const parts: Buffer[] = [];
  for (let at = 0; at === 0 || at < bytes.length; at += MAX_STRING_BYTES) {
    const part = bytes.subarray(at, at + MAX_STRING_BYTES);
    parts.push(Buffer.of(part.length), part);
  }
  return Buffer.concat(parts);
}

/** Text of a record's data; types without a text of their own as RFC 3597 has it. Throws {@link MessageInvalid}. */
export function readData(message: Buffer, { type, data, end }: AnswerRecord): string {
  const bytes = message.subarray(data, end);
  switch (typeName(type)) {
    case 'A':
      if (bytes.length !== 4) throw new MessageInvalid();
      return bytes.join('.');
    case 'AAAA':
      if (bytes.length !== 16) throw new MessageInvalid();
      return ipaddr.fromByteArray([...bytes]).toString();
    case 'CNAME':
    case 'NS':
    case 'PTR':
      return canonicalName(nameWithin(message, data, end));
    case 'MX':
      if (bytes.length < 3) throw new MessageInvalid();
      return `${bytes.readUInt16BE(0)} ${canonicalName(nameWithin(message, data + 2, end))}`;
    case 'TXT':
      return readStrings(bytes);
    default:
      return `\\# ${bytes.length} ${bytes.toString('hex')}`.trimEnd();
  }
}

function nameWithin(message: Buffer, start: number, end: number): string {
  const read = readName(message, start);
  if (read.end !== end) throw new MessageInvalid();
  return read.name;
}

function readStrings(bytes: Buffer): string {
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += 1 + bytes[at]!) {
    const end = at + 1 + bytes[at]!;
    if (end > bytes.length) throw new MessageInvalid();
    parts.push(bytes.subarray(at + 1, end));
  }
  return Buffer.concat(parts).toString();
}
