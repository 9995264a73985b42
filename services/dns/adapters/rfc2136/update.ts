// Changes of a zone as its server takes them itself (RFC 2136), signed, over TCP.
import { randomInt } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { AddressRefused, resolveChecked } from '../../../../proto/address-policy.ts';
import { CHANGE_MS, DnsFailed, type DnsFailure, type DnsProvider, TXT_TTL, type TxtRecord } from '../dns-failed.ts';
import type { ServerAddress } from '../server-address.ts';
import { encodeUpdate, MessageInvalid, readUpdateAnswer } from './message.ts';
import { signMessage, type TsigKey, verifyAnswer } from './tsig.ts';

interface Zone {
  server: ServerAddress;
  zone: string;
  key: TsigKey;
  /** CIDRs of private networks in which it may be. */
  allow: readonly string[];
}

const NOT_AUTHORITATIVE = 9;
const CODES: Readonly<Record<number, DnsFailure>> = {
  5: 'dns_refused',
  6: 'dns_refused',
  7: 'dns_refused',
  8: 'dns_refused',
  [NOT_AUTHORITATIVE]: 'dns_zone_not_found',
  10: 'dns_zone_not_found',
};

export function rfc2136Provider(zone: Zone): DnsProvider {
  return {
    add: (record, signal) => change(zone, record, TXT_TTL, signal),
    remove: (record, signal) => change(zone, record, null, signal),
  };
}

async function change(
  { server, zone, key, allow }: Zone,
  record: TxtRecord,
  ttl: number | null,
  signal: AbortSignal,
): Promise<void> {
  const id = randomInt(0x1_0000);
  const request = signMessage(encodeUpdate({ id, zone, ...record, ttl }), key, seconds());
  const answered = await exchange(server, allow, request.bytes, signal);
  try {
    const answer = readUpdateAnswer(answered);
    if (answer.id !== id) throw new DnsFailed('dns_failed');
    const signed = verifyAnswer(answered, answer, key, request, seconds());
    if (typeof signed === 'number' && signed !== 0) throw new DnsFailed('dns_unauthorized');
    if (answer.rcode !== 0) throw new DnsFailed(CODES[answer.rcode] ?? 'dns_failed');
    // Anybody on the way could say that it was done.
    if (signed !== true) throw new DnsFailed('dns_failed');
  } catch (error) {
    throw error instanceof MessageInvalid ? new DnsFailed('dns_failed', error) : error;
  }
}

const seconds = () => Math.floor(Date.now() / 1000);

/** Sends a message with its length before it, and reads one. */
async function exchange(
  { host, port }: ServerAddress,
  allow: readonly string[],
  message: Buffer,
  signal: AbortSignal,
): Promise<Buffer> {
  const ended = AbortSignal.any([AbortSignal.timeout(CHANGE_MS), signal]);
  try {
    const addresses = await resolveChecked(host, allow, CHANGE_MS);
    const socket = await connectOne(addresses, port, ended);
    try {
      const length = Buffer.alloc(2);
      length.writeUInt16BE(message.length);
      socket.write(Buffer.concat([length, message]));
      return await readOne(socket);
    } finally {
      socket.destroy();
    }
  } catch (error) {
    if (error instanceof DnsFailed) throw error;
    const refused = error instanceof AddressRefused && error.reason === 'forbidden';
    throw new DnsFailed(refused ? 'dns_address_refused' : 'dns_unreachable', error);
  }
}

/** The first address that answers. */
async function connectOne(addresses: readonly string[], port: number, signal: AbortSignal): Promise<Socket> {
  let failure: unknown = new DnsFailed('dns_unreachable');
  for (const host of addresses) {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<Socket>();
    const socket = connect({ host, port, signal });
    socket.once('connect', () => resolve(socket));
    socket.on('error', reject);
    try {
      return await promise;
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

async function readOne(socket: Socket): Promise<Buffer> {
  let read: Buffer = Buffer.alloc(0);
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    read = Buffer.concat([read, chunk]);
    if (read.length < 2) continue;
    const end = 2 + read.readUInt16BE(0);
    if (read.length >= end) return read.subarray(2, end);
  }
  throw new DnsFailed('dns_unreachable');
}
