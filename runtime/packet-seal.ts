// What travels through Redis and is believed carries a MAC keyed from the master key: whoever can write to Redis can lose
// or delay it, and say nothing in the console's name.
//
//   seal:  count (1 byte), then for each key: first 4 bytes of its id, 16 bytes of HMAC-SHA256
//
// While the master key is being changed, both keys sign, and one of them suffices: processes that know only the former,
// or only the next key, understand each other's neighbours.
import { createHmac, createSecretKey, hkdfSync, type KeyObject, timingSafeEqual } from 'node:crypto';

const ID_BYTES = 4;
const MAC_BYTES = 16;
const KEY_BYTES = 32;
const MOST_KEYS = 4;

interface Key {
  id: Buffer;
  /** Made once: a key given as bytes costs each MAC four times as much. */
  secret: KeyObject;
}

export class PacketSeal {
  readonly #keys: readonly Key[];

  /** `purpose` tells the uses of the master key apart. `previous` is the master key before it, or null. */
  constructor(purpose: string, masterKey: Uint8Array, previous: Uint8Array | null) {
    this.#keys = [masterKey, ...(previous ? [previous] : [])].map((key) => {
      const derived = Buffer.from(hkdfSync('sha256', key, 'svc/packets/v1', purpose, ID_BYTES + KEY_BYTES));
      return { id: derived.subarray(0, ID_BYTES), secret: createSecretKey(derived.subarray(ID_BYTES)) };
    });
  }

  /** The seal of the parts, in this order and of these lengths. */
  seal(parts: readonly (string | Uint8Array)[]): Buffer {
    return Buffer.concat([
      Buffer.of(this.#keys.length),
      ...this.#keys.flatMap(({ id, secret }) => [id, macOf(secret, parts)]),
    ]);
  }

  /** Length of the seal at the beginning of the bytes; 0 when there is none. */
  lengthAt(bytes: Uint8Array): number {
    const count = bytes[0] ?? 0;
    const length = 1 + count * (ID_BYTES + MAC_BYTES);
    return count >= 1 && count <= MOST_KEYS && bytes.length >= length ? length : 0;
  }

  /** Whether one of the keys made the seal for exactly these parts. */
  proves(seal: Uint8Array, parts: readonly (string | Uint8Array)[]): boolean {
    if (this.lengthAt(seal) !== seal.length || seal.length === 0) return false;
    for (let at = 1; at < seal.length; at += ID_BYTES + MAC_BYTES) {
      const id = seal.subarray(at, at + ID_BYTES);
      const key = this.#keys.find((known) => known.id.equals(id));
      if (!key) continue;
      return timingSafeEqual(seal.subarray(at + ID_BYTES, at + ID_BYTES + MAC_BYTES), macOf(key.secret, parts));
    }
    return false;
  }
}

/** Each part is preceded by its length, so that no two lists of parts are the same bytes. */
function macOf(secret: KeyObject, parts: readonly (string | Uint8Array)[]): Buffer {
  const hmac = createHmac('sha256', secret);
  const length = Buffer.alloc(4);
  for (const part of parts) {
    const bytes = typeof part === 'string' ? Buffer.from(part) : part;
    length.writeUInt32BE(bytes.length);
    hmac.update(length).update(bytes);
  }
  return hmac.digest().subarray(0, MAC_BYTES);
}
