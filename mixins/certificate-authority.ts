// Issues certificates of the internal CA: ECDSA P-256, CA for 10 years, node channel 90 days, nodes 30 days. Keys of
// nodes never come here; a node sends a certificate request.
import 'reflect-metadata';
import { createHash, createPrivateKey, randomBytes, randomUUID, type webcrypto, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { Crypto } from '@peculiar/webcrypto';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  Pkcs10CertificateRequest,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate as X509,
  X509CertificateGenerator,
} from '@peculiar/x509';
import { authorityKeyPlace, CertificateAuthorityRow } from '../models/nodes/certificate-authority.ts';
import type { Runtime } from '../runtime/runtime.ts';

/** Organisation of node certificates; the node channel accepts no other. */
export const NODE_ORGANISATION = 'Edge Delivery Console Node';
const CONSOLE_ORGANISATION = 'Edge Delivery Console';
const DAY_MS = 86_400_000;
const CA_DAYS = 3650;
export const SERVER_DAYS = 90;
export const NODE_DAYS = 30;
/** Clocks of nodes may be this far behind. */
const BACKDATE_MS = 3_600_000;
const MAX_CSR_CHARS = 8192;
const CREATE_LOCK = 0x53564341; // "SVCA"

type CryptoKey = webcrypto.CryptoKey;
type CryptoKeyPair = webcrypto.CryptoKeyPair;

const crypto = new Crypto();
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

export interface IssuedCertificate {
  certificatePem: string;
  /** Upper-case hexadecimal, as TLS libraries print it. */
  serial: string;
  /** SHA-256 of the DER, hexadecimal. */
  fingerprint: string;
  notAfter: Date;
}

export interface ServerCertificate extends IssuedCertificate {
  keyPem: string;
  notBefore: Date;
}

/** The request is no usable certificate request; the message says why and may be answered. */
export class CertificateRequestRefused extends Error {}

export class CertificateAuthority {
  readonly certificatePem: string;
  /** SHA-256 of the DER, hexadecimal: what nodes pin. */
  readonly sha256: string;
  readonly #certificate: X509;
  readonly #key: CryptoKey;
  readonly #verifier: X509Certificate;

  constructor(certificatePem: string, key: CryptoKey) {
    this.certificatePem = certificatePem;
    this.#certificate = new X509(certificatePem);
    this.#verifier = new X509Certificate(certificatePem);
    this.sha256 = createHash('sha256').update(this.#verifier.raw).digest('hex');
    this.#key = key;
  }

  /** Whether this authority signed the certificate; says nothing about its dates. */
  hasSigned(certificate: X509Certificate): boolean {
    return certificate.verify(this.#verifier.publicKey);
  }

  /** A certificate of the node channel with a new key, for host names and IP addresses. */
  async issueServer(names: readonly string[], now: Date): Promise<ServerCertificate> {
    const keys = (await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])) as CryptoKeyPair;
    const alternatives = names.map((value) => ({
      type: isIP(value) === 0 ? ('dns' as const) : ('ip' as const),
      value,
    }));
    const notBefore = new Date(now.getTime() - BACKDATE_MS);
    const issued = await this.#issue({
      subject: [{ CN: ['node channel'] }, { O: [CONSOLE_ORGANISATION] }],
      publicKey: keys.publicKey,
      notBefore,
      notAfter: new Date(now.getTime() + SERVER_DAYS * DAY_MS),
      usage: ExtendedKeyUsage.serverAuth,
      extensions: [new SubjectAlternativeNameExtension(alternatives)],
    });
    return { ...issued, notBefore, keyPem: await exportKey(keys.privateKey) };
  }

  /** A certificate for the key of a request. Throws {@link CertificateRequestRefused}. */
  async issueNode(nodeId: string, csrPem: string, now: Date): Promise<IssuedCertificate> {
    const request = await checkedRequest(csrPem);
    return this.#issue({
      subject: [{ CN: [nodeId] }, { O: [NODE_ORGANISATION] }],
      publicKey: await request.publicKey.export(ALGORITHM, ['verify'], crypto),
      notBefore: new Date(now.getTime() - BACKDATE_MS),
      notAfter: new Date(now.getTime() + NODE_DAYS * DAY_MS),
      usage: ExtendedKeyUsage.clientAuth,
      extensions: [],
    });
  }

  async #issue(options: {
    subject: { [type: string]: string[] }[];
    publicKey: CryptoKey;
    notBefore: Date;
    notAfter: Date;
    usage: ExtendedKeyUsage;
    extensions: SubjectAlternativeNameExtension[];
  }): Promise<IssuedCertificate> {
    // Whole seconds: that is what a certificate holds.
    const notAfter = new Date(Math.floor(options.notAfter.getTime() / 1000) * 1000);
    const certificate = await X509CertificateGenerator.create(
      {
        serialNumber: newSerial(),
        subject: options.subject,
        issuer: this.#certificate.subjectName,
        notBefore: options.notBefore,
        notAfter,
        publicKey: options.publicKey,
        signingKey: this.#key,
        signingAlgorithm: ALGORITHM,
        extensions: [
          new BasicConstraintsExtension(false, undefined, true),
          new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
          new ExtendedKeyUsageExtension([options.usage]),
          await AuthorityKeyIdentifierExtension.create(this.#certificate, false, crypto),
          ...options.extensions,
        ],
      },
      crypto,
    );
    const certificatePem = certificate.toString('pem');
    const { serialNumber, raw } = new X509Certificate(certificatePem);
    const fingerprint = createHash('sha256').update(raw).digest('hex');
    return { certificatePem, serial: serialNumber, fingerprint, notAfter };
  }
}

/** The authority of this console, made at first need; several processes that start together make one. */
export async function ensureCertificateAuthority(runtime: Runtime): Promise<CertificateAuthority> {
  const row =
    (await CertificateAuthorityRow.current(runtime.pools.api)) ??
    (await runtime.pools.api.transaction(async (sql) => {
      await sql.raw('select pg_advisory_xact_lock(?)', [CREATE_LOCK]);
      return (await CertificateAuthorityRow.current(sql)) ?? (await createAuthority(runtime, sql));
    }));
  const pkcs8 = runtime.sealer.open(row.privateKey, authorityKeyPlace(row.id));
  const key = await crypto.subtle.importKey('pkcs8', pkcs8, ALGORITHM, false, ['sign']);
  return new CertificateAuthority(row.certificatePem, key);
}

async function createAuthority(
  runtime: Runtime,
  sql: Parameters<typeof CertificateAuthorityRow.query>[0],
): Promise<CertificateAuthorityRow> {
  const now = Date.now();
  const keys = (await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])) as CryptoKeyPair;
  const certificate = await X509CertificateGenerator.createSelfSigned(
    {
      serialNumber: newSerial(),
      name: [{ CN: [`${CONSOLE_ORGANISATION} CA`] }, { O: [CONSOLE_ORGANISATION] }],
      notBefore: new Date(now - BACKDATE_MS),
      notAfter: new Date(now + CA_DAYS * DAY_MS),
      keys,
      signingAlgorithm: ALGORITHM,
      extensions: [
        new BasicConstraintsExtension(true, 0, true),
        new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
        await SubjectKeyIdentifierExtension.create(keys.publicKey, false, crypto),
      ],
    },
    crypto,
  );
  const id = randomUUID();
  const pkcs8 = Buffer.from(await crypto.subtle.exportKey('pkcs8', keys.privateKey));
  const row = {
    id,
    certificatePem: certificate.toString('pem'),
    certificateSha256: createHash('sha256').update(Buffer.from(certificate.rawData)).digest(),
    privateKey: runtime.sealer.seal(pkcs8, authorityKeyPlace(id)),
  };
  await CertificateAuthorityRow.query(sql).insert(row);
  runtime.log.info({ sha256: row.certificateSha256.toString('hex') }, 'internal certificate authority created');
  return row as CertificateAuthorityRow;
}

async function checkedRequest(csrPem: string): Promise<Pkcs10CertificateRequest> {
  if (csrPem.length > MAX_CSR_CHARS) throw new CertificateRequestRefused('the certificate request is too large');
  let request: Pkcs10CertificateRequest;
  try {
    request = new Pkcs10CertificateRequest(csrPem);
  } catch {
    throw new CertificateRequestRefused('the certificate request is not in PEM');
  }
  const { name, namedCurve } = request.publicKey.algorithm as { name?: string; namedCurve?: string };
  if (name !== 'ECDSA' || namedCurve !== 'P-256') {
    throw new CertificateRequestRefused('the key in the certificate request is not ECDSA P-256');
  }
  const proven = await request.verify(crypto).catch(() => false);
  if (!proven) throw new CertificateRequestRefused('the signature of the certificate request does not match its key');
  return request;
}

/** 16 random bytes, positive and without a leading zero, so that every library prints them alike. */
function newSerial(): string {
  const bytes = randomBytes(16);
  bytes[0] = 0x40 | (bytes[0]! & 0x3f);
  return bytes.toString('hex');
}

async function exportKey(key: CryptoKey): Promise<string> {
  const pkcs8 = Buffer.from(await crypto.subtle.exportKey('pkcs8', key));
  return createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' })
    .export({ type: 'pkcs8', format: 'pem' })
    .toString();
}
