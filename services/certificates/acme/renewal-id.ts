// How an authority is told of a certificate without its bytes (RFC 9773, section 4.1).
import 'reflect-metadata';
import { AuthorityKeyIdentifierExtension, X509Certificate } from '@peculiar/x509';

/** Null without a certificate, or for one that does not say who issued it. */
export function renewalId(leaf: Buffer | null): string | null {
  if (leaf === null) return null;
  const certificate = new X509Certificate(leaf);
  const keyId = certificate.getExtension(AuthorityKeyIdentifierExtension)?.keyId;
  if (!keyId) return null;
  const serial = Buffer.from(certificate.serialNumber, 'hex');
  // As DER has a positive number.
  const bytes = serial[0]! & 0x80 ? Buffer.concat([Buffer.of(0), serial]) : serial;
  return `${Buffer.from(keyId, 'hex').toString('base64url')}.${bytes.toString('base64url')}`;
}
