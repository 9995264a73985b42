// An authority with a responder (openssl), and certificates that name it.
import { execFileSync } from 'node:child_process';
import { createHash, createPrivateKey, X509Certificate } from 'node:crypto';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import type { ExecutionContext } from 'ava';
import { CertificateMaterialSchema } from '../../../../proto/gen/svc/node/v1/certificates_pb.js';
import { temporaryFolder } from './folder.ts';

export interface Answering {
  /** Extra arguments of `openssl ocsp`. */
  extra: string[];
  /** Answers by itself; the default asks openssl. */
  instead?: (question: Buffer) => { status: number; headers?: Record<string, string>; body: Buffer | string };
  asked: number;
}

export async function ocspAuthority(t: ExecutionContext) {
  const folder = temporaryFolder(t);
  const openssl = (...args: string[]): void => {
    execFileSync('openssl', args, { cwd: folder, stdio: 'ignore' });
  };
  const answering: Answering = { extra: ['-ndays', '2'], asked: 0 };
  let signer = 'ca';
  const answer = (question: Buffer): Buffer => {
    writeFileSync(join(folder, 'question'), question);
    const by = ['-rsigner', `${signer}.pem`, '-rkey', `${signer}.key`];
    openssl(
      'ocsp',
      '-index',
      'index.txt',
      '-CA',
      'ca.pem',
      ...by,
      '-reqin',
      'question',
      '-respout',
      'answer',
      ...answering.extra,
    );
    return readFileSync(join(folder, 'answer'));
  };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      answering.asked++;
      const question = Buffer.concat(chunks);
      const { status, headers, body } = answering.instead?.(question) ?? { status: 200, body: answer(question) };
      response.writeHead(status, headers).end(body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  const make = (name: string, serial: string, issuer: string | undefined, extensions: string): void => {
    writeFileSync(join(folder, `${name}.ext`), extensions);
    openssl(
      'req',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:P-256',
      '-nodes',
      '-keyout',
      `${name}.key`,
      '-out',
      `${name}.csr`,
      '-subj',
      `/CN=${name}`,
    );
    const by = issuer ? ['-CA', `${issuer}.pem`, '-CAkey', `${issuer}.key`] : ['-signkey', `${name}.key`];
    openssl(
      'x509',
      '-req',
      '-in',
      `${name}.csr`,
      ...by,
      '-set_serial',
      `0x${serial}`,
      '-days',
      '30',
      '-extfile',
      `${name}.ext`,
      '-out',
      `${name}.pem`,
    );
  };
  make('ca', '01', undefined, 'basicConstraints=critical,CA:true\nsubjectKeyIdentifier=hash\n');
  make('delegate', '02', 'ca', 'extendedKeyUsage=OCSPSigning\n');
  make('stranger', '03', 'ca', 'extendedKeyUsage=serverAuth\n');
  const leaf = (name: string, serial: string, state: 'V' | 'R', responder = `http://ocsp.example:${port}/`) => {
    make(name, serial, 'ca', `authorityInfoAccess=OCSP;URI:${responder}\nsubjectAltName=DNS:${name}\n`);
    const revoked = state === 'R' ? '260101000000Z' : '';
    appendFileSync(join(folder, 'index.txt'), `${state}\t401231235959Z\t${revoked}\t${serial}\tunknown\t/CN=${name}\n`);
    const der = new X509Certificate(readFileSync(join(folder, `${name}.pem`))).raw;
    return create(CertificateMaterialSchema, {
      certificateId: name,
      fingerprint: new Uint8Array(createHash('sha256').update(der).digest()),
      chain: [new Uint8Array(der), new Uint8Array(new X509Certificate(readFileSync(join(folder, 'ca.pem'))).raw)],
      privateKey: new Uint8Array(
        createPrivateKey(readFileSync(join(folder, `${name}.key`))).export({ format: 'der', type: 'pkcs8' }),
      ),
    });
  };
  return {
    answering,
    answer,
    leaf,
    signWith: (name: 'ca' | 'delegate' | 'stranger') => {
      signer = name;
    },
  };
}
