// An entry as the agent sees it: a key and bytes. Only its hash is computed here, in the way console and node agree on.

import { hash } from 'node:crypto';
import { toBinary } from '@bufbuild/protobuf';
import { type Entry, EntrySchema } from '../../../proto/gen/svc/config/v1/entry_pb.js';
import { readFields } from './wire.ts';

/** Separates kind and id in the key of a map; neither can hold it. */
const SEPARATOR = '\0';

/** The 32 bytes of entryHash (proto/entry-hash.ts) as 32 Latin-1 characters: a sixth of the memory of a Buffer. */
export type EntryHash = string;

export interface ParsedEntry {
  kind: string;
  id: string;
  hash: EntryHash;
  body: Buffer;
  features: string[];
}

export function entryKey(kind: string, id: string): string {
  return `${kind}${SEPARATOR}${id}`;
}

export function splitKey(key: string): { kind: string; id: string } {
  const at = key.indexOf(SEPARATOR);
  return { kind: key.slice(0, at), id: key.slice(at + 1) };
}

/** Reads an encoded entry at buffer[start, end) and hashes it. */
export function parseEntry(buffer: Buffer, start: number, end: number): ParsedEntry {
  let kind = '';
  let id = '';
  let body = buffer.subarray(0, 0);
  const features: string[] = [];
  readFields(buffer, start, end, (number, from, to) => {
    if (number === 1) kind = buffer.toString('utf8', from, to);
    else if (number === 2) id = buffer.toString('utf8', from, to);
    else if (number === 3) body = buffer.subarray(from, to);
    else if (number === 4) features.push(buffer.toString('utf8', from, to));
  });
  return { kind, id, body, features, hash: hashEntry(kind, id, body, features) };
}

/** The same value as entryHash(kind, id, bodyHash(body), features) of proto/entry-hash.ts, in two one-shot hashes. */
export function hashEntry(kind: string, id: string, body: Uint8Array, features: readonly string[]): EntryHash {
  const names = features.join(',');
  const kindBytes = Buffer.byteLength(kind);
  const idBytes = Buffer.byteLength(id);
  const input = Buffer.allocUnsafe(8 + kindBytes + idBytes + 32 + Buffer.byteLength(names));
  let at = input.writeUInt32BE(kindBytes, 0);
  at += input.write(kind, at);
  at = input.writeUInt32BE(idBytes, at);
  at += input.write(id, at);
  at += input.write(hash('sha256', body, 'binary'), at, 'latin1');
  input.write(names, at);
  return hash('sha256', input, 'binary');
}

export function encodeEntry(entry: Entry): Uint8Array {
  return toBinary(EntrySchema, entry);
}
