// Whether a chain leads to a CA that clients know, and where its next certificate can be fetched (RFC 5280 §4.2.2.1).
import 'reflect-metadata';
import { X509Certificate } from 'node:crypto';
import { rootCertificates } from 'node:tls';
import { AuthorityInfoAccessExtension, X509Certificate as X509, X509Certificates } from '@peculiar/x509';

export interface MissingIssuer {
  /** Of the last certificate of the chain, in several lines. */
  issuer: string;
  /** Where the last certificate says that its issuer is. */
  urls: string[];
}

const MAX_URL = 2048;
const PEM = /-----BEGIN/;

let roots: Map<string, X509Certificate[]> | undefined;

/**
 * What the chain lacks; null when it leads to a public root. A private CA that signs through an intermediate and names no
 * place for its own certificate lacks nothing either: its clients know it.
 */
export function missingIssuer(chain: readonly Buffer[]): MissingIssuer | null {
  const certificates = chain.map((der) => new X509Certificate(der));
  const last = certificates.at(-1);
  if (!last || isSelfIssued(last) || certificates.some((one, index) => (index > 0 && isRoot(one)) || rootOf(one))) {
    return null;
  }
  const urls = issuerUrls(last.raw);
  return chain.length > 1 && urls.length === 0 ? null : { issuer: last.issuer, urls };
}

export function isSelfIssued(certificate: X509Certificate): boolean {
  return certificate.checkIssued(certificate);
}

/** Certificates of an answer: one in DER, several in PEM, or a PKCS #7 bundle. Empty for anything else. */
export function readIssuers(body: Buffer): X509Certificate[] {
  for (const read of [fromDer, fromPem, fromBundle]) {
    try {
      const found = read(body);
      if (found.length > 0) return found;
    } catch {
      // Not of this form.
    }
  }
  return [];
}

function fromDer(body: Buffer): X509Certificate[] {
  return PEM.test(body.toString('latin1')) ? [] : [new X509Certificate(body)];
}

function fromPem(body: Buffer): X509Certificate[] {
  const blocks = body.toString('latin1').match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
  return blocks.map((block) => new X509Certificate(block));
}

function fromBundle(body: Buffer): X509Certificate[] {
  return [...new X509Certificates(body)].map(({ rawData }) => new X509Certificate(Buffer.from(rawData)));
}

/** Whether it has the name and key of a public root: a cross-signed one is known too. */
function isRoot(certificate: X509Certificate): boolean {
  const key = certificate.publicKey;
  return known(certificate.subject).some((root) => root.publicKey.equals(key));
}

function rootOf(certificate: X509Certificate): X509Certificate | undefined {
  return known(certificate.issuer).find((root) => certificate.checkIssued(root) && certificate.verify(root.publicKey));
}

/** Public roots with the name. */
function known(subject: string): readonly X509Certificate[] {
  roots ??= Map.groupBy(
    rootCertificates.map((pem) => new X509Certificate(pem)),
    (root) => root.subject,
  );
  return roots.get(subject) ?? [];
}

/** HTTP addresses without credentials; others cannot be fetched. */
function issuerUrls(der: Buffer): string[] {
  const names = new X509(der).getExtension(AuthorityInfoAccessExtension)?.caIssuers ?? [];
  return names.flatMap(({ type, value }) => {
    const url = type === 'url' && value.length <= MAX_URL ? URL.parse(value) : null;
    return url && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '' ? [url.href] : [];
  });
}
