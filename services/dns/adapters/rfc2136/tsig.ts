// Signatures of DNS messages with a key that both sides know (RFC 8945).
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { TSIG_ALGORITHMS } from '../../../../contract/resources/dns-credentials.ts';
import { CLASS_ANY, type DnsAnswer, encodeName, MessageInvalid, readName, TYPE_TSIG } from './message.ts';

export interface TsigKey {
  name: string;
  algorithm: (typeof TSIG_ALGORITHMS)[number];
  secret: Buffer;
}

const HASHES = {
  'hmac-sha1': 'sha1',
  'hmac-sha224': 'sha224',
  'hmac-sha256': 'sha256',
  'hmac-sha384': 'sha384',
  'hmac-sha512': 'sha512',
} as const;
/** Messages of a transfer that may follow each other without a signature (RFC 8945, section 5.3.1). */
const MAX_UNSIGNED = 99;
/** Class and time to live of a signature. */
const FIXED = Buffer.of(0, CLASS_ANY, 0, 0, 0, 0);
/** Seconds that clocks may differ by. */
const FUDGE = 300;

export interface SignedMessage {
  bytes: Buffer;
  mac: Buffer;
}

/** `time`: seconds since 1970. */
export function signMessage(message: Buffer, key: TsigKey, time: number): SignedMessage {
  const stamp = timeBytes(time, FUDGE);
  const mac = createHmac(HASHES[key.algorithm], key.secret)
    .update(message)
    .update(variables(key, stamp, 0, Buffer.alloc(0)))
    .digest();
  const tail = Buffer.concat([uint16(mac.length), mac, message.subarray(0, 2), uint16(0), uint16(0)]);
  const data = Buffer.concat([encodeName(key.algorithm), stamp, tail]);
  const fixed = Buffer.concat([uint16(TYPE_TSIG), uint16(CLASS_ANY), Buffer.alloc(4), uint16(data.length)]);
  const bytes = Buffer.concat([message, encodeName(key.name), fixed, data]);
  bytes.writeUInt16BE(bytes.readUInt16BE(10) + 1, 10);
  return { bytes, mac };
}

/**
 * Whether the answer is of who has the key, to this request and not long ago; a number: it says by this
 * code that the request was not taken for signed.
 */
export function verifyAnswer(
  message: Buffer,
  { additional, last }: DnsAnswer,
  key: TsigKey,
  request: SignedMessage,
  now: number,
): boolean | number {
  if (additional === 0 || last?.type !== TYPE_TSIG) return false;
  const { algorithm, stamp, time, mac, originalId, error, other } = readTsig(message, last.data, last.end);
  if (mac.length === 0) return error;
  const fixed = message.subarray(last.data - 8, last.data - 2);
  if (last.name !== key.name || !fixed.equals(FIXED)) return false;
  if (algorithm !== key.algorithm || Math.abs(now - time) > FUDGE) return false;
  const unsigned = Buffer.from(message.subarray(0, last.start));
  unsigned.writeUInt16BE(originalId, 0);
  unsigned.writeUInt16BE(additional - 1, 10);
  const expected = createHmac(HASHES[key.algorithm], key.secret)
    .update(uint16(request.mac.length))
    .update(request.mac)
    .update(unsigned)
    .update(variables(key, stamp, error, other))
    .digest();
  if (mac.length !== expected.length || !timingSafeEqual(mac, expected)) return false;
  return error === 0 || error;
}

/** Verifies the messages of one transfer, of which the first and the last are signed, and others now and then. */
export class TransferVerifier {
  readonly #key: TsigKey;
  #previous: Buffer;
  #first = true;
  #unsigned: Buffer[] = [];

  constructor(key: TsigKey, request: SignedMessage) {
    this.#key = key;
    this.#previous = request.mac;
  }

  /** Whether all messages so far are covered by a signature. */
  get complete(): boolean {
    return !this.#first && this.#unsigned.length === 0;
  }

  /** False: it is not of who has the key. A number: the server says by this code that the request was not taken for signed. */
  add(message: Buffer, { additional, last }: DnsAnswer, now: number): boolean | number {
    if (additional === 0 || last?.type !== TYPE_TSIG) {
      this.#unsigned.push(message);
      return !this.#first && this.#unsigned.length <= MAX_UNSIGNED;
    }
    const { algorithm, stamp, time, mac, originalId, error, other } = readTsig(message, last.data, last.end);
    if (mac.length === 0) return error;
    if (last.name !== this.#key.name || algorithm !== this.#key.algorithm || Math.abs(now - time) > FUDGE) return false;
    const bare = Buffer.from(message.subarray(0, last.start));
    bare.writeUInt16BE(originalId, 0);
    bare.writeUInt16BE(additional - 1, 10);
    const expected = createHmac(HASHES[this.#key.algorithm], this.#key.secret)
      .update(uint16(this.#previous.length))
      .update(this.#previous)
      .update(Buffer.concat([...this.#unsigned, bare]))
      .update(this.#first ? variables(this.#key, stamp, error, other) : stamp)
      .digest();
    if (mac.length !== expected.length || !timingSafeEqual(mac, expected)) return false;
    this.#previous = mac;
    this.#first = false;
    this.#unsigned = [];
    return error === 0 || error;
  }
}

interface Tsig {
  algorithm: string;
  /** Time and fudge, as they are signed. */
  stamp: Buffer;
  time: number;
  mac: Buffer;
  originalId: number;
  error: number;
  other: Buffer;
}

function readTsig(message: Buffer, start: number, end: number): Tsig {
  const { name: algorithm, end: at } = readName(message, start);
  const macAt = at + 10;
  if (macAt > end) throw new MessageInvalid();
  const tail = macAt + message.readUInt16BE(at + 8);
  if (tail + 6 > end) throw new MessageInvalid();
  const otherAt = tail + 6;
  if (otherAt + message.readUInt16BE(tail + 4) !== end) throw new MessageInvalid();
  return {
    algorithm,
    stamp: message.subarray(at, at + 8),
    time: message.readUIntBE(at, 6),
    mac: message.subarray(macAt, tail),
    originalId: message.readUInt16BE(tail),
    error: message.readUInt16BE(tail + 2),
    other: message.subarray(otherAt, end),
  };
}

/** What is signed beside the message. */
function variables({ name, algorithm }: TsigKey, stamp: Buffer, error: number, other: Buffer): Buffer {
  const parts = [encodeName(name), uint16(CLASS_ANY), Buffer.alloc(4), encodeName(algorithm), stamp];
  return Buffer.concat([...parts, uint16(error), uint16(other.length), other]);
}

function timeBytes(time: number, fudge: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeUIntBE(time, 0, 6);
  bytes.writeUInt16BE(fudge, 6);
  return bytes;
}

function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(value);
  return bytes;
}
