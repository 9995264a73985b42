// Reads and changes a zone at its primary server: transfers (RFC 5936) and dynamic updates (RFC 2136), signed (RFC 8945).
import { randomInt } from 'node:crypto';
import { AdapterError, type AdapterErrorKind, type Change, type RecordType } from '../adapter.ts';
import { MAX_RECORDS, type SingleRecord } from '../kit/sets.ts';
import { canonicalName } from '../kit/values.ts';
import { exchange, type Server } from './connection.ts';
import {
  CLASS_ANY,
  CLASS_IN,
  CLASS_NONE,
  type DnsAnswer,
  encodeQuery,
  encodeRecord,
  encodeUpdate,
  MessageInvalid,
  readName,
  readQueryAnswer,
  readUpdateAnswer,
  TYPE_AXFR,
  TYPE_SOA,
  type UpdateRecord,
} from './message.ts';
import { encodeChecked, encodeData, readData, typeCode, typeName } from './rdata.ts';
import { signMessage, TransferVerifier, type TsigKey, verifyAnswer } from './tsig.ts';

export interface Zone {
  server: Server;
  zone: string;
  key: TsigKey;
}

const NOT_AUTHORITATIVE = 9;
const RCODES: Readonly<Record<number, [AdapterErrorKind, string]>> = {
  2: ['timeout', 'SERVFAIL'],
  // The policy of a key may name other names and types: one change of many is refused.
  5: ['invalid', 'REFUSED'],
  6: ['conflict', 'YXDOMAIN'],
  7: ['conflict', 'YXRRSET'],
  8: ['conflict', 'NXRRSET'],
  [NOT_AUTHORITATIVE]: ['not_found', 'NOTAUTH'],
  10: ['not_found', 'NOTZONE'],
};
const READ_RCODES: Readonly<Record<number, [AdapterErrorKind, string]>> = {
  2: ['unavailable', 'SERVFAIL'],
  3: ['not_found', 'NXDOMAIN'],
  5: ['denied', 'REFUSED'],
  [NOT_AUTHORITATIVE]: ['not_found', 'NOTAUTH'],
};
/** Types that a CNAME record may not stand beside, as far as zones have them. */
const BESIDE_CNAME = ['A', 'AAAA', 'TXT', 'MX', 'NS', 'SRV', 'CAA', 'HTTPS', 'PTR'];
/** A message has at most 64 KiB, of which the signature takes some. */
const MAX_UPDATE_BYTES = 60_000;

const now = () => Math.floor(Date.now() / 1000);

/** Makes the changes, all or none. Throws {@link AdapterError}. */
export async function updateZone(zone: Zone, changes: readonly UpdateRecord[], signal: AbortSignal): Promise<void> {
  return send(zone, [], changes, signal);
}

/** Makes changes of sets, all or none unless they are too long for one message. Throws {@link AdapterError}. */
export async function changeZone(zone: Zone, changes: readonly Change[], signal: AbortSignal): Promise<void> {
  let records: UpdateRecord[] = [];
  let prerequisites: UpdateRecord[] = [];
  let size = 0;
  let isPartial = false;
  // Sets that a change of the same message removes: they are no obstacle.
  let removed = new Set<string>();
  const flush = async () => {
    if (records.length === 0) return;
    try {
      await send(zone, prerequisites, records, signal);
    } catch (error) {
      if (!(error instanceof AdapterError) || !isPartial) throw error;
      throw new AdapterError(error.kind, error.detail, { partial: true, cause: error });
    }
    isPartial = true;
    [records, prerequisites, size, removed] = [[], [], 0, new Set()];
  };
  for (const change of changes) {
    const made = recordsOf(change);
    const needed = prerequisitesOf(change).filter(({ name, type }) => !removed.has(`${name} ${type}`));
    const bytes = [...made, ...needed].reduce((sum, record) => sum + encodeRecord(record).length, 0);
    if (bytes > MAX_UPDATE_BYTES)
      throw new AdapterError('invalid', `too many values at ${change.name}`, { partial: isPartial });
    if (size + bytes > MAX_UPDATE_BYTES) await flush();
    records.push(...made);
    prerequisites.push(...prerequisitesOf(change).filter(({ name, type }) => !removed.has(`${name} ${type}`)));
    size += bytes;
    if (change.action === 'delete') removed.add(`${change.name} ${typeCode(change.type)}`);
  }
  await flush();
}

function recordsOf(change: Change): UpdateRecord[] {
  const { name } = change;
  encodeChecked(name);
  const type = typeCode(change.type);
  const whole: UpdateRecord = { name, type, class: CLASS_ANY, ttl: 0, data: Buffer.alloc(0) };
  if (change.action === 'delete') {
    if (!change.values) return [whole];
    return change.values.map((value) => {
      const data = encodeData(change.type as RecordType, value);
      return { name, type, class: CLASS_NONE, ttl: 0, data };
    });
  }
  const { ttl } = change;
  const added = change.values.map((value): UpdateRecord => {
    return { name, type, class: CLASS_IN, ttl, data: encodeData(change.type, value) };
  });
  return change.action === 'set' ? [whole, ...added] : added;
}

/** Servers leave out records that may not stand beside a CNAME and say that all is done: those have to be absent. */
function prerequisitesOf(change: Change): UpdateRecord[] {
  if (change.action === 'delete') return [];
  const absent = change.type === 'CNAME' ? BESIDE_CNAME : ['CNAME'];
  return absent.map((type) => {
    return { name: change.name, type: typeCode(type), class: CLASS_NONE, ttl: 0, data: Buffer.alloc(0) };
  });
}

async function send(
  { server, zone, key }: Zone,
  prerequisites: readonly UpdateRecord[],
  changes: readonly UpdateRecord[],
  signal: AbortSignal,
): Promise<void> {
  const id = randomInt(0x1_0000);
  const request = signMessage(encodeUpdate({ id, zone, prerequisites, changes }), key, now());
  await exchange(server, request.bytes, true, signal, (message) => {
    const answer = readOr(() => readUpdateAnswer(message), 'timeout');
    if (answer.id !== id) throw new AdapterError('timeout', 'an answer to another message');
    const signed = readOr(() => verifyAnswer(message, answer, key, request, now()), 'timeout');
    if (typeof signed === 'number' && signed !== 0) throw new AdapterError('denied', tsigError(signed));
    if (answer.rcode !== 0) throw failureOf(answer, RCODES, 'timeout');
    // Anybody on the way could say that it was done.
    if (signed !== true) throw new AdapterError('timeout', 'the answer is not signed with the key');
    return true;
  });
}

/** All records of the zone but the second SOA record. Throws {@link AdapterError}. */
export async function transferZone({ server, zone, key }: Zone, signal: AbortSignal): Promise<SingleRecord[]> {
  const id = randomInt(0x1_0000);
  const request = signMessage(encodeQuery(id, zone, TYPE_AXFR), key, now());
  const verifier = new TransferVerifier(key, request);
  const records: SingleRecord[] = [];
  let isOver = false;
  return exchange(server, request.bytes, false, signal, (message) => {
    const answer = readOr(() => readQueryAnswer(message), 'unavailable');
    if (answer.id !== id) throw new AdapterError('unavailable', 'an answer to another message');
    const signed = readOr(() => verifier.add(message, answer, now()), 'unavailable');
    assertRead(signed, answer);
    for (const record of answer.answers) {
      if (isOver) throw new AdapterError('unavailable', 'records after the end of the transfer');
      if (records.length === 0 && record.type !== TYPE_SOA)
        throw new AdapterError('unavailable', 'no SOA record first');
      if (records.length > 0 && record.type === TYPE_SOA) {
        isOver = true;
        continue;
      }
      if (records.length === MAX_RECORDS) throw new AdapterError('invalid', `more than ${MAX_RECORDS} records`);
      const { name, type, ttl } = record;
      const value = readOr(() => readData(message, record), 'unavailable');
      records.push({ name: canonicalName(name), type: typeName(type), line: 'default', ttl, value });
    }
    if (answer.answers.length === 0) throw new AdapterError('unavailable', 'an empty message in a transfer');
    if (!isOver) return undefined;
    if (!verifier.complete) throw new AdapterError('unavailable', 'the end of the transfer is not signed');
    return records;
  });
}

/** Serial of the SOA record. Throws {@link AdapterError}. */
export async function zoneSerial({ server, zone, key }: Zone, signal: AbortSignal): Promise<string> {
  const id = randomInt(0x1_0000);
  const request = signMessage(encodeQuery(id, zone, TYPE_SOA), key, now());
  return exchange(server, request.bytes, false, signal, (message) => {
    const answer = readOr(() => readQueryAnswer(message), 'unavailable');
    if (answer.id !== id) throw new AdapterError('unavailable', 'an answer to another message');
    assertRead(
      readOr(() => verifyAnswer(message, answer, key, request, now()), 'unavailable'),
      answer,
    );
    const soa = answer.answers.find(({ type, name }) => type === TYPE_SOA && name === zone);
    if (!soa) throw new AdapterError('not_found', 'no SOA record');
    return readOr(() => {
      const at = readName(message, readName(message, soa.data).end).end;
      if (at + 20 !== soa.end) throw new MessageInvalid();
      return String(message.readUInt32BE(at));
    }, 'unavailable');
  });
}

function assertRead(signed: boolean | number, answer: DnsAnswer): void {
  if (typeof signed === 'number' && signed !== 0) throw new AdapterError('denied', tsigError(signed));
  if (answer.rcode !== 0) throw failureOf(answer, READ_RCODES, 'unavailable');
  if (signed !== true) throw new AdapterError('unavailable', 'the answer is not signed with the key');
}

function failureOf(
  { rcode }: DnsAnswer,
  codes: Readonly<Record<number, [AdapterErrorKind, string]>>,
  other: AdapterErrorKind,
): AdapterError {
  const [kind, detail] = codes[rcode] ?? [other, `RCODE ${rcode}`];
  return new AdapterError(kind, detail);
}

/** The codes of RFC 8945, section 3. */
function tsigError(code: number): string {
  return { 16: 'BADSIG', 17: 'BADKEY', 18: 'BADTIME', 22: 'BADTRUNC' }[code] ?? `TSIG error ${code}`;
}

function readOr<T>(read: () => T, kind: AdapterErrorKind): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof MessageInvalid) throw new AdapterError(kind, 'the answer is no message', { cause: error });
    throw error;
  }
}
