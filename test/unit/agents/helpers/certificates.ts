// Certificates with keys, as many as a test wants: one that is really signed, and variants of it with other serial numbers,
// which cost nothing to make. Nobody on a node looks at the signature.
import { createHash, createPrivateKey, X509Certificate } from 'node:crypto';
import { create, toBinary } from '@bufbuild/protobuf';
import {
  type CertificateRef,
  CertificateRefSchema,
  SiteHttpsSchema,
} from '../../../../proto/gen/svc/config/v1/https_pb.js';
import {
  type CertificateMaterial,
  CertificateMaterialSchema,
} from '../../../../proto/gen/svc/node/v1/certificates_pb.js';
import { TestAuthority } from './authority.ts';

export interface TestCertificates {
  /** The same for the same number. */
  material(number: number): CertificateMaterial;
  ref(number: number): CertificateRef;
}

export async function testCertificates(): Promise<TestCertificates> {
  const authority = await TestAuthority.create();
  const { keyPem, certificatePem } = await authority.serverLeaf({ names: ['shop.example'] });
  const leaf = new X509Certificate(certificatePem);
  const serial = Buffer.from(leaf.serialNumber, 'hex');
  const end = leaf.raw.indexOf(serial) + serial.length;
  const privateKey = new Uint8Array(createPrivateKey(keyPem).export({ format: 'der', type: 'pkcs8' }));
  const issuer = new Uint8Array(new X509Certificate(authority.pem).raw);
  const material = (number: number): CertificateMaterial => {
    const der = Buffer.from(leaf.raw);
    der.writeUInt32BE(number, end - 4);
    return create(CertificateMaterialSchema, {
      certificateId: `crt_${number}`,
      fingerprint: new Uint8Array(createHash('sha256').update(der).digest()),
      chain: [new Uint8Array(der), issuer],
      privateKey,
    });
  };
  return {
    material,
    ref: (number) => {
      const { certificateId, fingerprint } = material(number);
      return create(CertificateRefSchema, { certificateId, fingerprint, name: `certificate ${number}` });
    },
  };
}

export function httpsEntry(siteId: string, certificates: CertificateRef[], ocspStapling = false) {
  const body = toBinary(SiteHttpsSchema, create(SiteHttpsSchema, { certificates, ocspStapling }));
  return { kind: 'site-https', id: siteId, body, features: ['https-v1'] };
}
