// Certificates of a benchmark on disk: in the pack of a node, as the agent would have left it, and in PEM.
import { closeSync, openSync, writeFileSync, writeSync } from 'node:fs';
import path from 'node:path';
import { create } from '@bufbuild/protobuf';
import { encodeMaterial } from '../../agents/edge/certificates/pack-record.ts';
import { frameRecord } from '../../agents/kit/journal.ts';
import { CipherProfile, type SiteHttps, TlsVersion } from '../../proto/gen/svc/config/v1/https_pb.js';
import { type CertificateMaterial, CertificateMaterialSchema } from '../../proto/gen/svc/node/v1/certificates_pb.js';
import type { CertificateFiles } from './plain-caddy.ts';
import type { Certificate } from './tls-load.ts';

export const packFile = (stateFolder: string): string => path.join(stateFolder, 'certificates.pack');

/** Writes the pack of a state folder; answers the fingerprints in their order. */
export async function writePack(
  stateFolder: string,
  certificates: AsyncIterable<Certificate> | Iterable<Certificate>,
): Promise<Buffer[]> {
  const fingerprints: Buffer[] = [];
  const fd = openSync(packFile(stateFolder), 'w', 0o600);
  for await (const certificate of certificates) {
    writeSync(fd, frameRecord(encodeMaterial(materialOf(certificate))));
    fingerprints.push(certificate.fingerprint);
  }
  closeSync(fd);
  return fingerprints;
}

export function materialOf({ fingerprint, chain, privateKey }: Certificate): CertificateMaterial {
  return create(CertificateMaterialSchema, { certificateId: idOf(fingerprint), fingerprint, chain, privateKey });
}

/** HTTPS of a site with one certificate and what the console has by default. */
export function httpsWith(
  fingerprint: Buffer,
): Pick<SiteHttps, 'certificates' | 'minimumVersion' | 'cipherProfile' | 'http2'> {
  const certificateId = idOf(fingerprint);
  return {
    certificates: [
      { $typeName: 'svc.config.v1.CertificateRef', certificateId, fingerprint: new Uint8Array(fingerprint), name: '' },
    ],
    minimumVersion: TlsVersion.TLS_VERSION_1_2,
    cipherProfile: CipherProfile.MODERN,
    http2: true,
  };
}

/** Writes chain and key in PEM. */
export function writePem(folder: string, name: string, { chain, privateKey }: Certificate): CertificateFiles {
  const certificate = path.join(folder, `${name}.pem`);
  const key = path.join(folder, `${name}.key`);
  writeFileSync(certificate, chain.map((der) => pem('CERTIFICATE', der)).join(''));
  writeFileSync(key, pem('PRIVATE KEY', privateKey), { mode: 0o600 });
  return { certificate, key };
}

const idOf = (fingerprint: Buffer): string => fingerprint.toString('hex', 0, 16);

function pem(label: string, der: Buffer): string {
  return `-----BEGIN ${label}-----\n${der.toString('base64').replace(/.{64}/g, '$&\n').trimEnd()}\n-----END ${label}-----\n`;
}
