// Certificates of sites, as people upload them.
import 'reflect-metadata';
import { createPrivateKey, randomBytes, webcrypto } from 'node:crypto';
import {
  AuthorityInfoAccessExtension,
  BasicConstraintsExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';

const DAY_MS = 86_400_000;

const ALGORITHMS = {
  p256: { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' },
  p384: { name: 'ECDSA', namedCurve: 'P-384', hash: 'SHA-384' },
  p521: { name: 'ECDSA', namedCurve: 'P-521', hash: 'SHA-512' },
  rsa: { name: 'RSASSA-PKCS1-v1_5', modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]), hash: 'SHA-256' },
  rsa1024: {
    name: 'RSASSA-PKCS1-v1_5',
    modulusLength: 1024,
    publicExponent: new Uint8Array([1, 0, 1]),
    hash: 'SHA-256',
  },
  ed25519: { name: 'Ed25519' },
} as const;
export type TestKey = keyof typeof ALGORITHMS;

/** Who signs certificates. */
export interface TestAuthority {
  name: string;
  pem: string;
  key: webcrypto.CryptoKey;
}

export interface TestCertificate {
  /** The certificate alone. */
  pem: string;
  /** With what leads to a root, which is left out. */
  chainPem: string;
  privateKeyPem: string;
  /** SHA-256 in hexadecimal. */
  fingerprint: string;
}

async function keyPair(kind: TestKey): Promise<webcrypto.CryptoKeyPair> {
  const usages: webcrypto.KeyUsage[] = ['sign', 'verify'];
  return (await webcrypto.subtle.generateKey(ALGORITHMS[kind], true, usages)) as webcrypto.CryptoKeyPair;
}

async function keyPem(key: webcrypto.CryptoKey): Promise<string> {
  const der = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', key));
  const opened = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  return opened.export({ type: 'pkcs8', format: 'pem' }).toString();
}

const serialNumber = () => `4a${randomBytes(15).toString('hex')}`;

/** An authority of one's own, signed by another where one is given. */
export async function testAuthority(
  name: string,
  issuer?: TestAuthority,
  { issuerUrl }: { issuerUrl?: string } = {},
): Promise<TestAuthority> {
  const keys = await keyPair('p256');
  const certificate = await X509CertificateGenerator.create(
    {
      serialNumber: serialNumber(),
      subject: `CN=${name}`,
      issuer: `CN=${issuer?.name ?? name}`,
      notBefore: new Date(Date.now() - DAY_MS),
      notAfter: new Date(Date.now() + 365 * DAY_MS),
      publicKey: keys.publicKey,
      signingKey: issuer?.key ?? keys.privateKey,
      signingAlgorithm: ALGORITHMS.p256,
      extensions: [
        new BasicConstraintsExtension(true, undefined, true),
        new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
        ...issuerAt(issuerUrl),
      ],
    },
    webcrypto,
  );
  return { name, pem: certificate.toString('pem'), key: keys.privateKey };
}

const issuerAt = (url: string | undefined) =>
  url === undefined ? [] : [new AuthorityInfoAccessExtension({ caIssuers: url })];

interface Wanted {
  issuer?: TestAuthority;
  /** Certificates between, the one that issued it first. */
  between?: readonly TestAuthority[];
  key?: TestKey;
  /** A certificate of an authority instead of a site. */
  authority?: boolean;
  /** Where the certificate says that the certificate of its issuer is. */
  issuerUrl?: string;
  notBefore?: Date;
  notAfter?: Date;
}

/** A certificate for the names, self-signed unless somebody issues it. */
export async function testCertificate(names: readonly string[], wanted: Wanted = {}): Promise<TestCertificate> {
  const { issuer, between = [], key = 'p256', authority = false } = wanted;
  const keys = await keyPair(key);
  const subject = `CN=${names[0] ?? 'nobody'}`;
  const certificate = await X509CertificateGenerator.create(
    {
      serialNumber: serialNumber(),
      subject,
      issuer: issuer ? `CN=${issuer.name}` : subject,
      notBefore: wanted.notBefore ?? new Date(Date.now() - DAY_MS),
      notAfter: wanted.notAfter ?? new Date(Date.now() + 90 * DAY_MS),
      publicKey: keys.publicKey,
      signingKey: issuer?.key ?? keys.privateKey,
      signingAlgorithm: issuer ? ALGORITHMS.p256 : ALGORITHMS[key],
      extensions: [
        new BasicConstraintsExtension(authority, undefined, true),
        ...issuerAt(wanted.issuerUrl),
        ...(names.length > 0
          ? [new SubjectAlternativeNameExtension(names.map((value) => ({ type: 'dns' as const, value })))]
          : []),
      ],
    },
    webcrypto,
  );
  const pem = certificate.toString('pem');
  return {
    pem,
    chainPem: [pem, ...between.map((one) => one.pem)].join('\n'),
    privateKeyPem: await keyPem(keys.privateKey),
    fingerprint: Buffer.from(await new X509Certificate(pem).getThumbprint('SHA-256', webcrypto)).toString('hex'),
  };
}
