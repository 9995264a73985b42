// Envelope encryption under SVC_MASTER_KEY: a random data key per secret, wrapped by the master key.
import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';

/** Where a secret is stored; bound to the ciphertext, so that one cannot be moved to another row. */
export interface SecretPlace {
  table: string;
  column: string;
  row: string;
}

export interface Sealer {
  /** First 16 hex digits of SHA-256 of the master key: a database written under another key is refused at start. */
  readonly fingerprint: string;
  /** That of the key before it, which opens and never seals; null without one. */
  readonly previousFingerprint: string | null;
  seal(secret: Uint8Array, place: SecretPlace): string;
  /** Throws when the key, the place or the ciphertext is another. */
  open(sealed: string, place: SecretPlace): Buffer;
}

const VERSION = '1';
const IV_BYTES = 12;
const TAG_BYTES = 16;
const KEY_BYTES = 32;
const WRAPPED_BYTES = IV_BYTES + TAG_BYTES + KEY_BYTES;

interface Key {
  fingerprint: string;
  wrapping: Buffer;
}

function deriveKey(masterKey: Uint8Array): Key {
  return {
    fingerprint: createHash('sha256').update(masterKey).digest('hex').slice(0, 16),
    wrapping: Buffer.from(hkdfSync('sha256', masterKey, 'svc/kek/v1', 'envelope', KEY_BYTES)),
  };
}

/**
 * A sealer for a master key of 32 bytes; `previous` is the key before it, for the time until everything is sealed under
 * the new one. Sealed text: `<version>.<fingerprint>.<base64url of wrapped key + value>`.
 */
export function createSealer(masterKey: Uint8Array, previous: Uint8Array | null = null): Sealer {
  const current = deriveKey(masterKey);
  const keys = [current, ...(previous ? [deriveKey(previous)] : [])];
  return {
    fingerprint: current.fingerprint,
    previousFingerprint: keys[1]?.fingerprint ?? null,
    seal(secret, place) {
      const additional = placeBytes(place);
      const dataKey = randomBytes(KEY_BYTES);
      const sealed = Buffer.concat([
        encrypt(current.wrapping, dataKey, additional),
        encrypt(dataKey, secret, additional),
      ]);
      return `${VERSION}.${current.fingerprint}.${sealed.toString('base64url')}`;
    },
    open(sealed, place) {
      const [version, under, text, ...rest] = sealed.split('.');
      if (version !== VERSION || text === undefined || rest.length > 0) throw new Error('not a sealed secret');
      const key = keys.find(({ fingerprint }) => fingerprint === under);
      if (!key) throw new Error(`sealed under another master key (${under})`);
      const bytes = Buffer.from(text, 'base64url');
      const additional = placeBytes(place);
      const dataKey = decrypt(key.wrapping, bytes.subarray(0, WRAPPED_BYTES), additional);
      return decrypt(dataKey, bytes.subarray(WRAPPED_BYTES), additional);
    },
  };
}

function placeBytes({ table, column, row }: SecretPlace): Buffer {
  return Buffer.from(JSON.stringify([VERSION, table, column, row]));
}

function encrypt(key: Uint8Array, value: Uint8Array, additional: Uint8Array): Buffer {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(additional);
  const body = Buffer.concat([cipher.update(value), cipher.final()]);
  return Buffer.concat([iv, cipher.getAuthTag(), body]);
}

function decrypt(key: Uint8Array, value: Buffer, additional: Uint8Array): Buffer {
  if (value.length < IV_BYTES + TAG_BYTES) throw new Error('not a sealed secret');
  const decipher = createDecipheriv('aes-256-gcm', key, value.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES })
    .setAAD(additional)
    .setAuthTag(value.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
  return Buffer.concat([decipher.update(value.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]);
}
