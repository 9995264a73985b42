// The demo's own certificate authority: made once per data folder, kept, and good for names below localhost alone, so that
// whoever lets a browser trust it gives nothing else away.
import 'reflect-metadata';
import { createHash, createPrivateKey, randomBytes, webcrypto } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { AsnConvert } from '@peculiar/asn1-schema';
import {
  GeneralName,
  GeneralSubtree,
  GeneralSubtrees,
  id_ce_nameConstraints,
  NameConstraints,
} from '@peculiar/asn1-x509';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  Extension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const USAGES: webcrypto.KeyUsage[] = ['sign', 'verify'];
const DAY_MS = 86_400_000;
const AUTHORITY_DAYS = 3650;
/** Browsers refuse certificates of sites that last longer than 398 days. */
const SITE_DAYS = 397;
const BACKDATE_MS = 3_600_000;
const PERMITTED = 'localhost';

export interface DemoCertificate {
  chainPem: string;
  privateKeyPem: string;
}

export class DemoAuthority {
  /** PEM file for whoever is to trust it. */
  readonly file: string;
  /** SHA-256 of the certificate, hexadecimal. */
  readonly sha256: string;
  readonly #certificate: X509Certificate;
  readonly #key: webcrypto.CryptoKey;

  constructor(file: string, certificate: X509Certificate, key: webcrypto.CryptoKey) {
    this.file = file;
    this.sha256 = createHash('sha256').update(Buffer.from(certificate.rawData)).digest('hex');
    this.#certificate = certificate;
    this.#key = key;
  }

  /** A certificate with a new key for a name below localhost. */
  async issue(name: string, now: Date): Promise<DemoCertificate> {
    const keys = await newKeys();
    const certificate = await X509CertificateGenerator.create(
      {
        serialNumber: newSerial(),
        subject: [{ CN: [name] }],
        issuer: this.#certificate.subjectName,
        ...lasting(SITE_DAYS, now),
        publicKey: keys.publicKey,
        signingKey: this.#key,
        signingAlgorithm: ALGORITHM,
        extensions: [
          new BasicConstraintsExtension(false, undefined, true),
          new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
          new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
          new SubjectAlternativeNameExtension([{ type: 'dns', value: name }]),
          await AuthorityKeyIdentifierExtension.create(this.#certificate, false, webcrypto),
          await SubjectKeyIdentifierExtension.create(keys.publicKey, false, webcrypto),
        ],
      },
      webcrypto,
    );
    return { chainPem: certificate.toString('pem'), privateKeyPem: await keyPem(keys.privateKey) };
  }
}

/** The authority whose certificate and key are in the two files; makes it where one of them is missing. */
export async function demoAuthority(certificateFile: string, keyFile: string, now: Date): Promise<DemoAuthority> {
  if (!existsSync(certificateFile) || !existsSync(keyFile)) await create(certificateFile, keyFile, now);
  const der = createPrivateKey(readFileSync(keyFile, 'utf8')).export({ type: 'pkcs8', format: 'der' });
  const key = await webcrypto.subtle.importKey('pkcs8', der, ALGORITHM, false, ['sign']);
  return new DemoAuthority(certificateFile, new X509Certificate(readFileSync(certificateFile, 'utf8')), key);
}

async function create(certificateFile: string, keyFile: string, now: Date): Promise<void> {
  const keys = await newKeys();
  const permittedSubtrees = new GeneralSubtrees([
    new GeneralSubtree({ base: new GeneralName({ dNSName: PERMITTED }) }),
  ]);
  const certificate = await X509CertificateGenerator.createSelfSigned(
    {
      serialNumber: newSerial(),
      name: [{ CN: ['Edge Delivery Console demo CA'] }],
      ...lasting(AUTHORITY_DAYS, now),
      keys,
      signingAlgorithm: ALGORITHM,
      extensions: [
        new BasicConstraintsExtension(true, 0, true),
        new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
        new Extension(id_ce_nameConstraints, true, AsnConvert.serialize(new NameConstraints({ permittedSubtrees }))),
        await SubjectKeyIdentifierExtension.create(keys.publicKey, false, webcrypto),
      ],
    },
    webcrypto,
  );
  // The certificate comes last: while it is missing a start that was killed is made good by the next one.
  put(keyFile, await keyPem(keys.privateKey), 0o600);
  put(certificateFile, `${certificate.toString('pem')}\n`, 0o644);
}

function put(file: string, text: string, mode: number): void {
  writeFileSync(`${file}.new`, text, { mode });
  renameSync(`${file}.new`, file);
}

function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(ALGORITHM, true, USAGES) as Promise<webcrypto.CryptoKeyPair>;
}

async function keyPem(key: webcrypto.CryptoKey): Promise<string> {
  const der = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', key));
  return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
    .export({ type: 'pkcs8', format: 'pem' })
    .toString();
}

const lasting = (days: number, now: Date) => ({
  notBefore: new Date(now.getTime() - BACKDATE_MS),
  notAfter: new Date(now.getTime() + days * DAY_MS),
});

/** 16 random bytes, positive and without a leading zero. */
function newSerial(): string {
  const bytes = randomBytes(16);
  bytes[0] = 0x40 | (bytes[0]! & 0x3f);
  return bytes.toString('hex');
}
