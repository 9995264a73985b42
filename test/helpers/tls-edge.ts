// A real edge with two sites over TLS, without agent and console: for programs that try what it does with handshakes and
// frames.
import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { encodeStaple } from '../../agents/edge/certificates/pack-record.ts';
import { frameRecord } from '../../agents/kit/journal.ts';
import { httpsWith, packFile, writePack } from '../../bench/lib/certificate-files.ts';
import { edgeCommand } from '../../bench/lib/edge.ts';
import { siteHost, writeEdgeState } from '../../bench/lib/edge-state.ts';
import { answers, freePort, startServer } from '../../bench/lib/servers.ts';
import { CipherProfile } from '../../proto/gen/svc/config/v1/https_pb.js';
import { CertificateStapleSchema } from '../../proto/gen/svc/node/v1/certificates_pb.js';
import { type TestCertificate, testCertificate } from './site-certificates.ts';

export interface TlsEdge {
  port: number;
  /** The name of a site with the modern profile and a staple, which leads to this machine, and of one with the compatible. */
  modern: string;
  compatible: string;
  stop(): Promise<void>;
}

const DAY_SECONDS = 86_400;

/** Starts an edge whose origin reads bodies and answers more than a window of HTTP/2. */
export async function startTlsEdge(): Promise<TlsEdge> {
  const folder = mkdtempSync(join(tmpdir(), 'tls-edge-'));
  const origin = createServer((request, response) => {
    request.resume().on('end', () => response.end(Buffer.alloc(1 << 20, 'x')));
    // A request that breaks off.
    request.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => origin.listen(0, '127.0.0.1', resolve));
  const [modern, compatible] = ['localhost', siteHost(1)];
  const certificate = await testCertificate([modern, compatible], { authority: true });
  const fingerprint = Buffer.from(certificate.fingerprint, 'hex');
  writeEdgeState({
    folder,
    sites: 2,
    aliases: [modern],
    origin: { address: '127.0.0.1', port: (origin.address() as AddressInfo).port },
    https: (index) => ({
      ...httpsWith(fingerprint),
      cipherProfile: index === 0 ? CipherProfile.MODERN : CipherProfile.COMPATIBLE,
      ocspStapling: index === 0,
    }),
  });
  const [chain, privateKey] = [derOf(certificate.pem), derOf(certificate.privateKeyPem)];
  await writePack(folder, [{ fingerprint, chain: [chain], privateKey }]);
  const staple = create(CertificateStapleSchema, {
    fingerprint,
    ocspResponse: goodStaple(folder, certificate),
    nextUpdate: BigInt(Math.floor(Date.now() / 1000) + DAY_SECONDS),
  });
  appendFileSync(packFile(folder), frameRecord(encodeStaple(staple)));
  const [plain, port] = [await freePort(), await freePort()];
  const command = edgeCommand(folder, plain, undefined, port);
  const server = await startServer('edge', '0-63', command, plain, () => answers(plain, modern, 200));
  return {
    port,
    modern,
    compatible,
    stop: async () => {
      await server.stop();
      origin.closeAllConnections();
      await new Promise((resolve) => origin.close(resolve));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function derOf(pem: string): Buffer {
  return Buffer.from(pem.replace(/-----[^-]+-----|\s/g, ''), 'base64');
}

/** What a certificate that is its own authority says of itself. */
function goodStaple(folder: string, { pem, privateKeyPem }: TestCertificate): Buffer {
  const openssl = (...args: string[]) =>
    execFileSync('openssl', args, { cwd: folder, stdio: ['ignore', 'pipe', 'ignore'] });
  writeFileSync(join(folder, 'leaf.pem'), pem);
  writeFileSync(join(folder, 'leaf.key'), privateKeyPem, { mode: 0o600 });
  const serial = openssl('x509', '-in', 'leaf.pem', '-noout', '-serial').toString().trim().replace('serial=', '');
  writeFileSync(join(folder, 'index.txt'), `V\t401231235959Z\t\t${serial}\tunknown\t/CN=localhost\n`);
  openssl('ocsp', '-issuer', 'leaf.pem', '-cert', 'leaf.pem', '-reqout', 'question');
  const signer = ['-CA', 'leaf.pem', '-rsigner', 'leaf.pem', '-rkey', 'leaf.key'];
  openssl('ocsp', '-index', 'index.txt', ...signer, '-reqin', 'question', '-respout', 'answer', '-ndays', '2');
  return readFileSync(join(folder, 'answer'));
}
