// Certificates that the console itself would never issue, to see that the node channel refuses them.
import 'reflect-metadata';
import { createPrivateKey, randomBytes, webcrypto, X509Certificate } from 'node:crypto';
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  Pkcs10CertificateRequestGenerator,
  X509CertificateGenerator,
} from '@peculiar/x509';
import { NODE_ORGANISATION } from '../../mixins/certificate-authority.ts';
import { authorityKeyPlace, CertificateAuthorityRow } from '../../models/nodes/certificate-authority.ts';
import type { Runtime } from '../../runtime/runtime.ts';

const P256 = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

export interface Issuer {
  certificatePem: string;
  key: webcrypto.CryptoKey;
}

export interface Leaf {
  keyPem: string;
  certificatePem: string;
  serial: string;
}

async function pem(key: webcrypto.CryptoKey): Promise<string> {
  const der = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', key));
  return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
    .export({ type: 'pkcs8', format: 'pem' })
    .toString();
}

/** The console's own authority, with its key. */
export async function consoleIssuer(runtime: Runtime): Promise<Issuer> {
  const row = (await CertificateAuthorityRow.current(runtime.pools.api))!;
  const der = runtime.sealer.open(row.privateKey, authorityKeyPlace(row.id));
  const key = await webcrypto.subtle.importKey('pkcs8', der, P256, false, ['sign']);
  return { certificatePem: row.certificatePem, key };
}

/** An authority that looks like the console's and is not. */
export async function foreignIssuer(runtime: Runtime): Promise<Issuer> {
  const keys = await webcrypto.subtle.generateKey(P256, true, ['sign', 'verify']);
  const own = new X509Certificate((await consoleIssuer(runtime)).certificatePem);
  const certificate = await X509CertificateGenerator.createSelfSigned(
    {
      name: own.subject.split('\n').join(', '),
      serialNumber: own.serialNumber,
      keys,
      signingAlgorithm: P256,
      notAfter: new Date(Date.now() + 86_400_000),
      extensions: [new BasicConstraintsExtension(true, 0, true)],
    },
    webcrypto,
  );
  return { certificatePem: certificate.toString('pem'), key: keys.privateKey };
}

export async function issueLeaf(
  issuer: Issuer,
  subject: { nodeId: string; organisation?: string; notBefore?: Date; notAfter?: Date },
): Promise<Leaf> {
  const keys = await webcrypto.subtle.generateKey(P256, true, ['sign', 'verify']);
  const authority = new X509Certificate(issuer.certificatePem);
  const serialNumber = `4a${randomBytes(15).toString('hex')}`;
  const certificate = await X509CertificateGenerator.create(
    {
      serialNumber,
      subject: [{ CN: [subject.nodeId] }, { O: [subject.organisation ?? NODE_ORGANISATION] }],
      issuer: authority.subject.split('\n').join(', '),
      notBefore: subject.notBefore ?? new Date(Date.now() - 3_600_000),
      notAfter: subject.notAfter ?? new Date(Date.now() + 86_400_000),
      publicKey: keys.publicKey,
      signingKey: issuer.key,
      signingAlgorithm: P256,
      extensions: [new ExtendedKeyUsageExtension([ExtendedKeyUsage.clientAuth])],
    },
    webcrypto,
  );
  return {
    keyPem: await pem(keys.privateKey),
    certificatePem: certificate.toString('pem'),
    serial: new X509Certificate(certificate.toString('pem')).serialNumber,
  };
}

/** A certificate request with a key of the algorithm. */
export async function requestWith(algorithm: {
  name: string;
  namedCurve?: string;
  modulusLength?: number;
  publicExponent?: Uint8Array;
  hash: string;
}): Promise<string> {
  const keys = (await webcrypto.subtle.generateKey(algorithm as webcrypto.EcKeyGenParams, true, [
    'sign',
    'verify',
  ])) as webcrypto.CryptoKeyPair;
  const request = await Pkcs10CertificateRequestGenerator.create(
    { name: 'CN=node', keys, signingAlgorithm: algorithm as never },
    webcrypto,
  );
  return request.toString('pem');
}
