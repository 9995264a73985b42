// Encryption of packets between console processes: AES-256-GCM under a key that each start of a process has for itself.
//
//   opening:  0xa0 + number of keys (1 byte), first 4 bytes of the id of the key that the start key comes from,
//             then for each other key: first 4 bytes of its id, start key wrapped under it (48 bytes)
//
// The start key is HKDF of the master key and the sender, which is 16 random bytes of each start. A nonce is the count of a
// packet, so none is used twice. While the master key is being changed, the start key of the next key is also wrapped
// under the former one: processes that know either of them open the packet.
import {
  type CipherGCM,
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  type DecipherGCM,
  hkdfSync,
  type KeyObject,
} from 'node:crypto';

const MARK = 0xa0;
const MOST_KEYS = 4;
const ID_BYTES = 4;
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const WRAPPED_BYTES = KEY_BYTES + TAG_BYTES;
/** Counts of packets begin at 1. */
const WRAPPING_COUNT = 0n;

interface MasterKey {
  id: Buffer;
  secret: Buffer;
}

/** What the process seals with: the start key, and the opening of each of its packets. */
export interface StartKey {
  key: KeyObject;
  opening: Buffer;
}

export class PacketCipher {
  readonly #keys: readonly MasterKey[];

  /** `purpose` tells the uses of the master key apart. `previous` is the master key before it, or null. */
  constructor(purpose: string, masterKey: Uint8Array, previous: Uint8Array | null) {
    this.#keys = [masterKey, ...(previous ? [previous] : [])].map((key) => {
      const derived = Buffer.from(hkdfSync('sha256', key, 'svc/packets/v2', purpose, ID_BYTES + KEY_BYTES));
      return { id: derived.subarray(0, ID_BYTES), secret: derived.subarray(ID_BYTES) };
    });
  }

  /** The key of a start. `sender` must be random: two starts with one sender would use nonces twice. */
  startKey(sender: Uint8Array): StartKey {
    const [current, ...others] = this.#keys as [MasterKey, ...MasterKey[]];
    const bytes = startBytes(current, sender);
    const wrapped = others.flatMap((other) => {
      const key = createSecretKey(startBytes(other, sender));
      return [other.id, encrypt(key, WRAPPING_COUNT, [other.id, sender], bytes)];
    });
    const opening = Buffer.concat([Buffer.of(MARK + this.#keys.length), current.id, ...wrapped]);
    return { key: createSecretKey(bytes), opening };
  }

  /** Length of the opening at the beginning of the bytes; 0 when there is none. */
  lengthAt(bytes: Uint8Array): number {
    const count = (bytes[0] ?? 0) - MARK;
    if (count < 1 || count > MOST_KEYS) return 0;
    const length = 1 + ID_BYTES + (count - 1) * (ID_BYTES + WRAPPED_BYTES);
    return bytes.length >= length ? length : 0;
  }

  /** The start key of a sender, from the opening of one of its packets; null without a key that is known here. */
  keyOf(opening: Buffer, sender: Uint8Array): KeyObject | null {
    const current = this.#known(opening.subarray(1, 1 + ID_BYTES));
    if (current) return createSecretKey(startBytes(current, sender));
    for (let at = 1 + ID_BYTES; at < opening.length; at += ID_BYTES + WRAPPED_BYTES) {
      const other = this.#known(opening.subarray(at, at + ID_BYTES));
      if (!other) continue;
      const wrapped = opening.subarray(at + ID_BYTES, at + ID_BYTES + WRAPPED_BYTES);
      const key = createSecretKey(startBytes(other, sender));
      const bytes = decrypt(key, WRAPPING_COUNT, [other.id, sender], wrapped);
      return bytes && createSecretKey(bytes);
    }
    return null;
  }

  #known(id: Buffer): MasterKey | undefined {
    return this.#keys.find((key) => key.id.equals(id));
  }
}

/** The ciphertext and its tag. `count` must never be the same twice under one key. */
export function encrypt(
  key: KeyObject,
  count: bigint,
  about: readonly (string | Uint8Array)[],
  body: Uint8Array,
): Buffer {
  const cipher = createCipheriv('aes-256-gcm', key, nonce(count));
  name(cipher, about);
  const text = cipher.update(body);
  cipher.final();
  return Buffer.concat([text, cipher.getAuthTag()]);
}

/** What was encrypted; null where the key, the count, `about` or any byte is another. */
export function decrypt(
  key: KeyObject,
  count: bigint,
  about: readonly (string | Uint8Array)[],
  sealed: Buffer,
): Buffer | null {
  const length = sealed.length - TAG_BYTES;
  if (length < 0) return null;
  const decipher = createDecipheriv('aes-256-gcm', key, nonce(count), { authTagLength: TAG_BYTES });
  name(decipher, about);
  decipher.setAuthTag(sealed.subarray(length));
  const body = decipher.update(sealed.subarray(0, length));
  try {
    decipher.final();
    return body;
  } catch {
    return null;
  }
}

function startBytes({ secret }: MasterKey, sender: Uint8Array): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, sender, 'start', KEY_BYTES));
}

function nonce(count: bigint): Buffer {
  const bytes = Buffer.alloc(NONCE_BYTES);
  bytes.writeBigUInt64BE(count, NONCE_BYTES - 8);
  return bytes;
}

/** Each part of the associated data is preceded by its length, so that no two lists of parts are the same bytes. */
function name(cipher: CipherGCM | DecipherGCM, about: readonly (string | Uint8Array)[]): void {
  const parts = about.map((part) => (typeof part === 'string' ? Buffer.from(part) : part));
  const lengths = Buffer.alloc(4 * parts.length);
  for (const [index, part] of parts.entries()) lengths.writeUInt32BE(part.length, 4 * index);
  cipher.setAAD(Buffer.concat([lengths, ...parts]));
}
