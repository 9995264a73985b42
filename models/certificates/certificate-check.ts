// What a certificate chain and its key must be to be kept, whoever sends them. Only what was read is kept, encoded anew:
// nothing of the text around it.
import 'reflect-metadata';
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { SubjectAlternativeNameExtension, X509Certificate as X509 } from '@peculiar/x509';
import { fail } from '../../contract/errors.ts';
import { type AUTHORITY_FAULTS, type KeyType, MAX_CHAIN } from '../../contract/resources/certificates.ts';
import { normaliseHostName } from '../../contract/scalars/host-name.ts';

/** A certificate as nodes get it, and what is told of it. Its key is a secret. */
export interface CertificateMaterial {
  /** DER, leaf first. */
  chain: Buffer[];
  /** PKCS #8 in DER. */
  privateKey: Buffer;
  /** SHA-256 of the leaf. */
  fingerprint: Buffer;
  /** DNS names in lower case, each once. */
  names: string[];
  /** Who issued the leaf, in one line. */
  issuer: string;
  keyType: KeyType;
  notBefore: Date;
  notAfter: Date;
}

/** Names of one certificate. */
const MAX_NAMES = 1000;
const MIN_RSA_BITS = 2048;
/** Longer ones cost every handshake, and common clients refuse them. */
const MAX_RSA_BITS = 8192;
const MAX_ISSUER = 500;

const CURVES: Readonly<Record<string, KeyType>> = { prime256v1: 'p256', secp384r1: 'p384', secp521r1: 'p521' };
/** The type of a prime field in DER, which is there only where a curve is spelt out. */
const PRIME_FIELD = Buffer.from('06072a8648ce3d0101', 'hex');

interface Block {
  label: string;
  der: Buffer;
}

/**
 * Reads a chain, leaf first, and the key of the leaf, both in PEM. Throws CERTIFICATE_INVALID and the other errors of an
 * upload; none carries anything of what was sent but names, numbers and times.
 */
export function checkChain(chainPem: string, privateKeyPem: string, now: Date): CertificateMaterial {
  const chain = readChain(chainPem);
  const leaf = chain[0]!;
  if (leaf.ca) fail('CERTIFICATE_INVALID', { reason: 'authority', index: 0 });
  const keyType = keyTypeOf(leaf.publicKey);
  assertOrder(chain);
  const names = dnsNames(leaf);
  const [notBefore, notAfter] = [leaf.validFromDate, leaf.validToDate];
  if (now < notBefore || now >= notAfter) {
    const times = { notBefore: notBefore.toISOString(), notAfter: notAfter.toISOString() };
    fail('CERTIFICATE_NOT_CURRENTLY_VALID', times);
  }
  const key = readKey(privateKeyPem);
  if (!leaf.checkPrivateKey(key)) fail('CERTIFICATE_KEY_MISMATCH');
  return {
    chain: chain.map(({ raw }) => raw),
    privateKey: key.export({ format: 'der', type: 'pkcs8' }),
    fingerprint: fingerprintOf(leaf),
    names,
    issuer: oneLine(leaf.issuer).slice(0, MAX_ISSUER),
    keyType,
    notBefore,
    notAfter,
  };
}

/** Certificates of authorities in PEM, 1 to `limit`; an answer that is a text says why they cannot be used. */
export function readAuthorities(pem: string, limit: number): Buffer[] | (typeof AUTHORITY_FAULTS)[number] {
  const blocks = pemBlocks(pem);
  if (blocks.length === 0) return 'none';
  if (blocks.length > limit) return 'too_many';
  const found: Buffer[] = [];
  for (const { label, der } of blocks) {
    if (label !== 'CERTIFICATE') return 'foreign_block';
    const certificate = parsed(der);
    if (!certificate) return 'unreadable';
    if (!certificate.ca) return 'not_authority';
    if (isSpeltOut(spkiOf(certificate))) return 'explicit_curve';
    found.push(certificate.raw);
  }
  return found;
}

/** A distinguished name of several lines in one. */
export function oneLine(name: string | undefined): string {
  return (name ?? '').split('\n').join(', ');
}

export function fingerprintOf({ fingerprint256 }: X509Certificate): Buffer {
  return Buffer.from(fingerprint256.replaceAll(':', ''), 'hex');
}

function readChain(pem: string): X509Certificate[] {
  const blocks = pemBlocks(pem);
  if (blocks.length === 0) fail('CERTIFICATE_CHAIN_UNREADABLE', { index: 0 });
  const foreign = blocks.find(({ label }) => label !== 'CERTIFICATE');
  if (foreign) fail('CERTIFICATE_CHAIN_FOREIGN_BLOCK', { label: foreign.label });
  if (blocks.length > MAX_CHAIN) fail('CERTIFICATE_INVALID', { reason: 'too_long', limit: MAX_CHAIN });
  return blocks.map(({ der }, index) => {
    const certificate = parsed(der) ?? fail('CERTIFICATE_CHAIN_UNREADABLE', { index });
    if (isSpeltOut(spkiOf(certificate))) fail('CERTIFICATE_CHAIN_EXPLICIT_CURVE', { index });
    return certificate;
  });
}

function parsed(der: Buffer): X509Certificate | undefined {
  try {
    const certificate = new X509Certificate(der);
    // Read here, where it may fail: a key of a kind that nobody knows.
    return certificate.publicKey ? certificate : undefined;
  } catch {
    return undefined;
  }
}

/** Whether the certificate in DER can be served with this issuer after it. */
export function isUsableIssuer(issuer: X509Certificate, issued: Buffer): boolean {
  const certificate = parsed(issuer.raw);
  return (
    certificate !== undefined && !isSpeltOut(spkiOf(certificate)) && hasIssued(certificate, new X509Certificate(issued))
  );
}

function hasIssued(issuer: X509Certificate, issued: X509Certificate): boolean {
  return issuer.ca && issued.checkIssued(issuer) && issued.verify(issuer.publicKey);
}

function assertOrder(chain: readonly X509Certificate[]): void {
  for (const [index, issuer] of chain.entries()) {
    if (index === 0) continue;
    if (!issuer.ca) fail('CERTIFICATE_INVALID', { reason: 'not_authority', index });
    const issued = chain[index - 1]!;
    if (!hasIssued(issuer, issued)) fail('CERTIFICATE_CHAIN_ORDER', { index });
  }
}

function keyTypeOf(key: KeyObject): KeyType {
  const { modulusLength: bits = 0, namedCurve = '' } = key.asymmetricKeyDetails ?? {};
  const type = key.asymmetricKeyType;
  if (type === 'rsa' && bits >= MIN_RSA_BITS && bits <= MAX_RSA_BITS) return 'rsa';
  const curve = type === 'ec' ? CURVES[namedCurve] : undefined;
  return (
    curve ??
    fail('CERTIFICATE_KEY_TYPE_UNSUPPORTED', {
      type,
      ...(bits ? { bits } : {}),
      ...(namedCurve ? { curve: namedCurve } : {}),
    })
  );
}

/** Throws CERTIFICATE_NO_DNS_NAMES; other kinds of names are left out. */
function dnsNames(leaf: X509Certificate): string[] {
  const found = new X509(leaf.raw).getExtension(SubjectAlternativeNameExtension)?.names.items ?? [];
  const names = found.flatMap(({ type, value }) => (type === 'dns' ? (certificateName(value) ?? []) : []));
  const distinct = [...new Set(names)];
  if (distinct.length === 0) fail('CERTIFICATE_NO_DNS_NAMES');
  if (distinct.length > MAX_NAMES) fail('CERTIFICATE_INVALID', { reason: 'too_many_names', limit: MAX_NAMES });
  return distinct;
}

/** A name as certificates have it: a host name, or *. before one. Null for others. */
export function certificateName(text: string): string | null {
  const wildcard = text.startsWith('*.') ? '*.' : '';
  const name = normaliseHostName(text.slice(wildcard.length));
  return name === null ? null : wildcard + name;
}

function readKey(pem: string): KeyObject {
  const blocks = pemBlocks(pem);
  const keys = blocks.filter(({ label }) => label.endsWith('PRIVATE KEY'));
  const others = blocks.filter(({ label }) => !label.endsWith('PRIVATE KEY') && label !== 'EC PARAMETERS');
  if (keys.length !== 1 || others.length > 0) fail('CERTIFICATE_KEY_UNREADABLE');
  if (blocks.some(({ der }) => isSpeltOut(der))) fail('CERTIFICATE_KEY_EXPLICIT_CURVE');
  const { label, der } = keys[0]!;
  const type = KEY_FORMS[label] ?? fail('CERTIFICATE_KEY_UNREADABLE');
  try {
    return createPrivateKey({ key: der, format: 'der', type });
  } catch {
    // What OpenSSL says may quote the key.
    return fail('CERTIFICATE_KEY_UNREADABLE');
  }
}

const KEY_FORMS: Readonly<Record<string, 'pkcs8' | 'pkcs1' | 'sec1'>> = {
  'PRIVATE KEY': 'pkcs8',
  'RSA PRIVATE KEY': 'pkcs1',
  'EC PRIVATE KEY': 'sec1',
};

function spkiOf(certificate: X509Certificate): Buffer {
  return Buffer.from(new X509(certificate.raw).publicKey.rawData);
}

function isSpeltOut(der: Buffer): boolean {
  return der.includes(PRIME_FIELD);
}

/**
 * All blocks of a text in PEM, with whatever stands between left out. What is no base64 gives bytes that nothing can read,
 * and so does a block that does not end.
 */
function pemBlocks(pem: string): Block[] {
  const blocks = [...pem.matchAll(/-----BEGIN ([A-Z0-9 ]{1,40})-----([^-]*)-----END \1-----/g)].map(
    ([, label, body]) => ({ label: label!, der: Buffer.from(body!, 'base64') }),
  );
  const begun = pem.split('-----BEGIN ').length - 1;
  return begun === blocks.length ? blocks : [...blocks, { label: 'CERTIFICATE', der: Buffer.alloc(0) }];
}
