// Key pair and PKCS#10 request of a node: ECDSA P-256, made locally; the private key never leaves the machine.
import 'reflect-metadata';
import { createPrivateKey, webcrypto } from 'node:crypto';
import { Pkcs10CertificateRequestGenerator } from '@peculiar/x509';

export interface CertificateRequest {
  /** PKCS#8 PEM. */
  keyPem: string;
  /** PKCS#10 PEM. */
  csrPem: string;
}

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

/** A new key and a request for it. The console decides the subject; the common name here is only a label. */
export async function createCertificateRequest(label: string): Promise<CertificateRequest> {
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
  const commonName = label.replace(/[^A-Za-z0-9._-]/g, '-').slice(0, 64) || 'node';
  const request = await Pkcs10CertificateRequestGenerator.create(
    { name: `CN=${commonName}`, keys, signingAlgorithm: ALGORITHM },
    webcrypto,
  );
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey));
  const keyPem = createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' }).export({
    type: 'pkcs8',
    format: 'pem',
  });
  return { keyPem: keyPem.toString(), csrPem: request.toString('pem') };
}
