// The set hash of a cluster's configuration: the sum modulo 2^256 of one SHA-256 per entry, kept incrementally by the
// console and recomputed by the node, in total and per bucket. It detects drift. It is forgeable by design, so it never
// serves as a receipt or a signature.
import { createHash } from 'node:crypto';

export const BUCKET_COUNT = 4096;
export const HASH_BYTES = 32;
const MODULUS = 1n << 256n;

/** SHA-256 of an entry's body; the content address of its blob. */
export function bodyHash(body: Uint8Array): Buffer {
  return createHash('sha256').update(body).digest();
}

/** SHA-256(len kind, kind, len id, id, body hash, features joined by ","); lengths are big-endian u32 of the UTF-8 bytes. */
export function entryHash(kind: string, id: string, bodySha256: Uint8Array, features: readonly string[]): Buffer {
  const hash = createHash('sha256');
  for (const text of [kind, id]) {
    const bytes = Buffer.from(text, 'utf8');
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    hash.update(length).update(bytes);
  }
  return hash.update(bodySha256).update(features.join(',')).digest();
}

/** Bucket of an entry, 0 to 4095: the first 12 bits of SHA-256(kind, NUL, id). */
export function bucketOf(kind: string, id: string): number {
  const digest = createHash('sha256').update(kind).update('\0').update(id).digest();
  return digest.readUInt16BE(0) >>> 4;
}

export function toSum(hash: Uint8Array): bigint {
  return hash.length === 0 ? 0n : BigInt(`0x${Buffer.from(hash).toString('hex')}`);
}

/** 32 bytes, big-endian. */
export function fromSum(sum: bigint): Buffer {
  return Buffer.from(sum.toString(16).padStart(HASH_BYTES * 2, '0'), 'hex');
}

/** The sum of two sums, modulo 2^256. */
export function addSums(one: bigint, other: bigint): bigint {
  return (one + other) % MODULUS;
}

/** `sum` with the hashes in `removed` taken out and those in `added` put in, modulo 2^256. */
export function moveSum(sum: bigint, removed: Iterable<Uint8Array>, added: Iterable<Uint8Array>): bigint {
  let next = sum;
  for (const hash of removed) next -= toSum(hash);
  for (const hash of added) next += toSum(hash);
  return ((next % MODULUS) + MODULUS) % MODULUS;
}
