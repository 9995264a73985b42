// Whether what came as a certificate can be served: nothing that is not goes into the pack.
import { createHash, createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import type { CertificateMaterial } from '../../../proto/gen/svc/node/v1/certificates_pb.js';

const MAX_CHAIN = 10;

/** Why material cannot be served, without a word of what is secret in it; undefined when it can. */
export function problemOfMaterial({ fingerprint, chain, privateKey }: CertificateMaterial): string | undefined {
  const [leaf] = chain;
  if (!leaf || chain.length > MAX_CHAIN) return `its chain has ${chain.length} certificates`;
  if (!createHash('sha256').update(leaf).digest().equals(fingerprint)) return 'it is not the requested certificate';
  let certificates: X509Certificate[];
  try {
    certificates = chain.map((der) => new X509Certificate(der));
  } catch {
    return 'its chain cannot be read';
  }
  let key: KeyObject;
  try {
    key = createPrivateKey({ key: Buffer.from(privateKey), format: 'der', type: 'pkcs8' });
  } catch {
    return 'its key cannot be read';
  }
  return certificates[0]!.checkPrivateKey(key) ? undefined : 'its key does not match the certificate';
}
