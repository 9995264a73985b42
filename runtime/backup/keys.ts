// Keys of backups: an X25519 pair, apart from the master key. A console that writes backups has the public key alone.
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
} from 'node:crypto';
import { BackupError } from './backup-error.ts';

const PUBLIC_PREFIX = 'svc-backup-public-';
const SECRET_PREFIX = 'svc-backup-secret-';
const KEY_BYTES = 32;
const CHECK_BYTES = 4;
const TAG_BYTES = 16;
/** Each wrapping key is used once, with a fresh ephemeral pair: the nonce need not differ. */
const NONCE = Buffer.alloc(12);

/** A file's key, wrapped for one recipient. */
export interface WrappedKey {
  /** The recipient's public key as text. */
  publicKey: string;
  /** Base64url. */
  ephemeral: string;
  wrapped: string;
}

/** A new pair as text. */
export function generateBackupKeys(): { publicKey: string; secretKey: string } {
  const { publicKey, privateKey } = generateKeyPairSync('x25519');
  return {
    publicKey: toText(PUBLIC_PREFIX, rawPublic(publicKey)),
    secretKey: toText(SECRET_PREFIX, rawSecret(privateKey)),
  };
}

/** The bytes of a public key. Throws BackupError (bad_key) for a text that is none; typing errors are noticed. */
export function parsePublicKey(text: string): Buffer {
  return parse(PUBLIC_PREFIX, text, 'a public key of backups');
}

/** The secret key of a key file: its first line that is no comment. Throws BackupError (bad_key) without repeating it. */
export function parseSecretKey(file: string): KeyObject {
  const line = file.split('\n').find((each) => each.trim() !== '' && !each.startsWith('#')) ?? '';
  const raw = parse(SECRET_PREFIX, line.trim(), 'the secret key of a backup');
  return createPrivateKey({
    key: { kty: 'OKP', crv: 'X25519', d: raw.toString('base64url'), x: '' } as never,
    format: 'jwk',
  });
}

/** The public key of a secret one, as text. */
export function publicKeyOf(secret: KeyObject): string {
  return toText(PUBLIC_PREFIX, rawPublic(createPublicKey(secret)));
}

/** Wraps the file's key for a recipient. */
export function wrapKey(fileKey: Buffer, recipient: string): WrappedKey {
  const raw = parsePublicKey(recipient);
  const { publicKey, privateKey } = generateKeyPairSync('x25519');
  const ephemeral = rawPublic(publicKey);
  const shared = agree(privateKey, keyOf(raw));
  const cipher = createCipheriv('aes-256-gcm', wrappingKey(shared, ephemeral, raw), NONCE);
  const wrapped = Buffer.concat([cipher.update(fileKey), cipher.final(), cipher.getAuthTag()]);
  return { publicKey: recipient, ephemeral: ephemeral.toString('base64url'), wrapped: wrapped.toString('base64url') };
}

/** The file's key. Throws BackupError (wrong_key) when no recipient has the secret key. */
export function unwrapKey(recipients: readonly WrappedKey[], secret: KeyObject): Buffer {
  const own = publicKeyOf(secret);
  const mine = recipients.find(({ publicKey }) => publicKey === own);
  if (!mine) {
    const listed = recipients.map(({ publicKey }) => publicKey).join(', ');
    throw new BackupError('wrong_key', `The backup is encrypted to ${listed}; the key is that of ${own}.`);
  }
  try {
    const ephemeral = Buffer.from(mine.ephemeral, 'base64url');
    const wrapped = Buffer.from(mine.wrapped, 'base64url');
    const key = wrappingKey(agree(secret, keyOf(ephemeral)), ephemeral, parsePublicKey(own));
    const decipher = createDecipheriv('aes-256-gcm', key, NONCE, { authTagLength: TAG_BYTES });
    decipher.setAuthTag(wrapped.subarray(-TAG_BYTES));
    return Buffer.concat([decipher.update(wrapped.subarray(0, -TAG_BYTES)), decipher.final()]);
  } catch (error) {
    throw new BackupError('damaged', 'The backup is damaged: its key cannot be opened. Use another backup.', {
      cause: error,
    });
  }
}

/** Throws for a public key of low order, with which anybody would know the shared secret. */
function agree(privateKey: KeyObject, publicKey: KeyObject): Buffer {
  return diffieHellman({ privateKey, publicKey });
}

function wrappingKey(shared: Buffer, ephemeral: Buffer, recipient: Buffer): Buffer {
  const salt = Buffer.concat([ephemeral, recipient]);
  return Buffer.from(hkdfSync('sha256', shared, salt, 'svc/backup/v1/recipient', KEY_BYTES));
}

function keyOf(raw: Buffer): KeyObject {
  return createPublicKey({ key: { kty: 'OKP', crv: 'X25519', x: raw.toString('base64url') }, format: 'jwk' });
}

function rawPublic(key: KeyObject): Buffer {
  return Buffer.from(key.export({ format: 'jwk' }).x!, 'base64url');
}

function rawSecret(key: KeyObject): Buffer {
  return Buffer.from(key.export({ format: 'jwk' }).d!, 'base64url');
}

function toText(prefix: string, raw: Buffer): string {
  return prefix + Buffer.concat([raw, checkOf(prefix, raw)]).toString('base64url');
}

function checkOf(prefix: string, raw: Buffer): Buffer {
  return createHash('sha256').update(prefix).update(raw).digest().subarray(0, CHECK_BYTES);
}

function parse(prefix: string, text: string, what: string): Buffer {
  const bytes = Buffer.from(text.startsWith(prefix) ? text.slice(prefix.length) : '', 'base64url');
  const raw = bytes.subarray(0, KEY_BYTES);
  const valid = bytes.length === KEY_BYTES + CHECK_BYTES && checkOf(prefix, raw).equals(bytes.subarray(KEY_BYTES));
  if (!valid || toText(prefix, raw) !== text) {
    throw new BackupError(
      'bad_key',
      `This is not ${what}. It begins with "${prefix}"; npm run backup -- keygen makes a pair.`,
    );
  }
  return raw;
}
