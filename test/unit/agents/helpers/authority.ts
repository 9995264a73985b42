// A certificate authority for tests, made anew each time.
import 'reflect-metadata';
import { createPrivateKey, randomBytes, webcrypto } from 'node:crypto';
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
  type X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';
import { certificatePin } from '../../../../agents/kit/pinned-tls.ts';

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const DAY_MS = 24 * 3600 * 1000;

export interface Leaf {
  keyPem: string;
  certificatePem: string;
}

export interface ServerLeafOptions {
  names?: string[];
  notBefore?: Date;
  notAfter?: Date;
}

async function newKeys() {
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey));
  const keyPem = createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' }).export({
    type: 'pkcs8',
    format: 'pem',
  });
  return { keys, keyPem: keyPem.toString() };
}

export class TestAuthority {
  readonly pem: string;
  readonly pin: string;
  private readonly certificate: X509Certificate;
  private readonly signingKey: webcrypto.CryptoKey;

  private constructor(certificate: X509Certificate, signingKey: webcrypto.CryptoKey) {
    this.certificate = certificate;
    this.signingKey = signingKey;
    this.pem = certificate.toString('pem');
    this.pin = certificatePin(this.pem);
  }

  static async create(name = 'test authority'): Promise<TestAuthority> {
    const { keys } = await newKeys();
    const certificate = await X509CertificateGenerator.createSelfSigned(
      {
        serialNumber: randomBytes(8).toString('hex'),
        name: `CN=${name}`,
        notBefore: new Date(Date.now() - DAY_MS),
        notAfter: new Date(Date.now() + 365 * DAY_MS),
        keys,
        signingAlgorithm: ALGORITHM,
        extensions: [
          new BasicConstraintsExtension(true, undefined, true),
          new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
          await SubjectKeyIdentifierExtension.create(keys.publicKey),
        ],
      },
      webcrypto,
    );
    return new TestAuthority(certificate, keys.privateKey);
  }

  async serverLeaf(options: ServerLeafOptions = {}): Promise<Leaf> {
    const { keys, keyPem } = await newKeys();
    const names = options.names ?? ['localhost', '127.0.0.1'];
    const certificate = await this.sign('CN=console', keys.publicKey, ExtendedKeyUsage.serverAuth, {
      ...options,
      extra: [
        new SubjectAlternativeNameExtension(
          names.map((value) => ({ type: /^[0-9.]+$/.test(value) ? 'ip' : 'dns', value })),
        ),
      ],
    });
    return { keyPem, certificatePem: certificate };
  }

  /** Answers a PKCS#10 request with a node certificate. */
  async issue(csrPem: string, nodeId: string, options: { notBefore?: Date; notAfter?: Date } = {}): Promise<string> {
    const request = new Pkcs10CertificateRequest(csrPem);
    if (!(await request.verify(webcrypto))) throw new Error('the request is not signed by its key');
    const key = await request.publicKey.export(ALGORITHM, ['verify'], webcrypto);
    return this.sign(`CN=${nodeId},O=Node`, key, ExtendedKeyUsage.clientAuth, options);
  }

  async clientLeaf(nodeId: string): Promise<Leaf> {
    const { keys, keyPem } = await newKeys();
    return {
      keyPem,
      certificatePem: await this.sign(`CN=${nodeId},O=Node`, keys.publicKey, ExtendedKeyUsage.clientAuth, {}),
    };
  }

  private async sign(
    subject: string,
    publicKey: webcrypto.CryptoKey,
    usage: ExtendedKeyUsage,
    options: { notBefore?: Date; notAfter?: Date; extra?: SubjectAlternativeNameExtension[] },
  ): Promise<string> {
    const certificate = await X509CertificateGenerator.create(
      {
        serialNumber: randomBytes(8).toString('hex'),
        subject,
        issuer: this.certificate.subject,
        notBefore: options.notBefore ?? new Date(Date.now() - 3600_000),
        notAfter: options.notAfter ?? new Date(Date.now() + 30 * DAY_MS),
        publicKey,
        signingKey: this.signingKey,
        signingAlgorithm: ALGORITHM,
        extensions: [
          new BasicConstraintsExtension(false),
          new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
          new ExtendedKeyUsageExtension([usage]),
          await AuthorityKeyIdentifierExtension.create(this.certificate.publicKey),
          ...(options.extra ?? []),
        ],
      },
      webcrypto,
    );
    return certificate.toString('pem');
  }
}
