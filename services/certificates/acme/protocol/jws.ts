// Signed messages of RFC 8555: JSON web signatures with the key of an account (ES256).
import { createHash, createHmac, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';

export interface Jws {
  protected: string;
  payload: string;
  signature: string;
}

interface Header {
  nonce: string;
  url: string;
  /** Address of the account; null before there is one: the key itself is sent. */
  kid: string | null;
}

/** External account of an authority (RFC 8555, section 7.3.4). */
export interface ExternalAccount {
  kid: string;
  /** base64url. */
  hmacKey: string;
}

/** A new key of an account, PKCS #8 in DER. */
export function newAccountKey(): Buffer {
  return generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    privateKeyEncoding: { type: 'pkcs8', format: 'der' },
    publicKeyEncoding: { type: 'spki', format: 'der' },
  }).privateKey;
}

interface EcJwk {
  crv: string;
  kty: string;
  x: string;
  y: string;
}

/** Members in the order of their names, as thumbprints want them. */
function publicJwk(key: KeyObject): EcJwk {
  const { crv, kty, x, y } = createPublicKey(key).export({ format: 'jwk' }) as unknown as EcJwk;
  return { crv, kty, x, y };
}

/** RFC 7638, SHA-256. */
export function thumbprint(key: KeyObject): string {
  return createHash('sha256')
    .update(JSON.stringify(publicJwk(key)))
    .digest('base64url');
}

/** `payload` null asks for a resource (POST-as-GET). */
export function signed(key: KeyObject, header: Header, payload: object | null): Jws {
  const { kid, nonce, url } = header;
  const who = kid === null ? { jwk: publicJwk(key) } : { kid };
  const head = encode({ alg: 'ES256', ...who, nonce, url });
  const body = payload === null ? '' : encode(payload);
  const signature = sign('sha256', Buffer.from(`${head}.${body}`), { key, dsaEncoding: 'ieee-p1363' });
  return { protected: head, payload: body, signature: signature.toString('base64url') };
}

/** What shows an authority that an external account wants the key of this one. */
export function binding(key: KeyObject, external: ExternalAccount, url: string): Jws {
  const head = encode({ alg: 'HS256', kid: external.kid, url });
  const body = encode(publicJwk(key));
  const secret = Buffer.from(external.hmacKey, 'base64url');
  const signature = createHmac('sha256', secret).update(`${head}.${body}`).digest('base64url');
  return { protected: head, payload: body, signature };
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
