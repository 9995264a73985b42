// What people sign in with beside a password, as a test holds it: an authenticator app and a passkey. Both are written
// from their standards, not with the console's libraries, and both can lie.
import { createHash, createHmac, createSign, generateKeyPairSync, randomBytes } from 'node:crypto';

/** RFC 6238 with SHA-1, 30 s and 6 digits: the code of the step `offset` steps from now. */
export function totpCode(uri: string, offset = 0, now = Date.now()): string {
  const step = BigInt(Math.floor(now / 30_000) + offset);
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(step);
  const digest = createHmac('sha1', base32(new URL(uri).searchParams.get('secret') ?? ''))
    .update(counter)
    .digest();
  const at = digest.at(-1)! & 15;
  return String((digest.readUInt32BE(at) & 0x7fffffff) % 1_000_000).padStart(6, '0');
}

function base32(text: string): Buffer {
  const bits = [...text].map((digit) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(digit).toString(2).padStart(5, '0'));
  const bytes = bits.join('').match(/.{8}/g) ?? [];
  return Buffer.from(bytes.map((byte) => Number.parseInt(byte, 2)));
}

/** What the authenticator says instead of the truth. */
export interface Lies {
  challenge?: string;
  origin?: string;
  rpId?: string;
  type?: string;
  userHandle?: string;
  credentialId?: string;
  /** Signature counter; counts up by itself otherwise. */
  counter?: number;
  userVerified?: boolean;
  /** Breaks the signature. */
  signature?: Buffer;
}

const UP = 0x01;
const UV = 0x04;
const AT = 0x40;

const base64url = (bytes: Uint8Array | string) => Buffer.from(bytes).toString('base64url');
const sha256 = (bytes: Uint8Array | string) => createHash('sha256').update(bytes).digest();

/** A passkey of one account of one console, with user verification and an ES256 key. */
export class SoftPasskey {
  readonly id = randomBytes(16).toString('base64url');
  readonly #origin: string;
  readonly #keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  #userHandle = '';
  #counter = 0;

  constructor(origin: string) {
    this.#origin = origin;
  }

  /** The answer to registration options. */
  register(options: { challenge: string; user: { id: string } }, lies: Lies = {}) {
    this.#userHandle = options.user.id;
    const key = this.#keys.publicKey.export({ format: 'jwk' });
    const credential = Buffer.from(this.id, 'base64url');
    const length = Buffer.alloc(2);
    length.writeUInt16BE(credential.length);
    const cose = Buffer.concat([
      Buffer.from('a5010203262001215820', 'hex'),
      Buffer.from(key.x!, 'base64url'),
      Buffer.from('225820', 'hex'),
      Buffer.from(key.y!, 'base64url'),
    ]);
    const data = Buffer.concat([this.#head(AT, lies), Buffer.alloc(16), length, credential, cose]);
    const attestation = Buffer.concat([
      Buffer.from('a3', 'hex'),
      text('fmt'),
      text('none'),
      text('attStmt'),
      Buffer.from('a0', 'hex'),
      text('authData'),
      Buffer.from([0x58, data.length]),
      data,
    ]);
    return this.#credential({
      clientDataJSON: base64url(this.#client('webauthn.create', options.challenge, lies)),
      attestationObject: base64url(attestation),
      transports: ['internal'],
    });
  }

  /** The answer to authentication options. */
  authenticate(options: { challenge: string }, lies: Lies = {}) {
    const data = this.#head(0, lies);
    const client = this.#client('webauthn.get', options.challenge, lies);
    const signed = createSign('sha256').update(Buffer.concat([data, sha256(client)]));
    return this.#credential(
      {
        clientDataJSON: base64url(client),
        authenticatorData: base64url(data),
        signature: base64url(lies.signature ?? signed.sign(this.#keys.privateKey)),
        userHandle: lies.userHandle ?? this.#userHandle,
      },
      lies.credentialId,
    );
  }

  #head(flags: number, { rpId, counter, userVerified = true }: Lies): Buffer {
    this.#counter = counter ?? this.#counter + 1;
    const count = Buffer.alloc(4);
    count.writeUInt32BE(this.#counter);
    const all = flags | UP | (userVerified ? UV : 0);
    return Buffer.concat([sha256(rpId ?? new URL(this.#origin).hostname), Buffer.from([all]), count]);
  }

  #client(type: string, challenge: string, lies: Lies): string {
    const said = {
      type: lies.type ?? type,
      challenge: lies.challenge ?? challenge,
      origin: lies.origin ?? this.#origin,
    };
    return JSON.stringify({ ...said, crossOrigin: false });
  }

  #credential<T>(response: T, id = this.id) {
    return { id, rawId: id, type: 'public-key', clientExtensionResults: {}, response };
  }
}

/** A CBOR text string of fewer than 24 bytes. */
function text(value: string): Buffer {
  return Buffer.concat([Buffer.from([0x60 + value.length]), Buffer.from(value)]);
}
