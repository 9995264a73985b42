// Pebble, the certificate authority that Let's Encrypt has for tests, with the name server that it asks. It keeps nothing:
// its root is another at each start.
import 'reflect-metadata';
import { createPrivateKey, randomBytes, webcrypto } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { request as plainRequest } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import {
  BasicConstraintsExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';
import { buildGoTools } from './go-tools.ts';
import { type Child, type Processes, tail } from './processes.ts';

const ADDRESS = '127.0.0.1';
const START_MS = 60_000;
const LOOK_MS = 50;
const REQUEST_MS = 10_000;
const MAX_BYTES = 1_048_576;
const YEAR_MS = 365 * 86_400_000;

export interface PebbleOptions {
  /** Who starts and stops its two processes. */
  processes: Processes;
  /** For its certificate, configuration and log; made if it is not there. */
  folder: string;
  /** Free ports of this machine; it listens on 127.0.0.1 alone. `dns` is UDP and TCP. */
  ports: Record<'acme' | 'management' | 'dns' | 'dnsManagement', number>;
  /** Where it asks for answers of http-01, as others do on port 80. */
  httpPort: number;
  /** What every name leads to for which nothing else was said. Default 127.0.0.1. */
  address?: string;
  /** External accounts by their ids, with keys in base64url; required when given. */
  external?: Readonly<Record<string, string>>;
  /** Life of certificates, seconds. Default 90 days. */
  lifeSeconds?: number;
}

export interface Pebble {
  /** Of the directory. */
  url: string;
  /** PEM of what vouches for its server. */
  caPem: string;
  /** PEM of the root of what it issues. */
  rootPem: string;
  /** Where its name server answers, as address:port. */
  dnsServer: string;
  /** Tells the name server something, such as `add-a` with { host: 'a.example.', addresses: ['192.0.2.1'] }. */
  dns(command: string, body: object): Promise<void>;
  /** Tells Pebble something, such as `set-renewal-info/`. */
  manage(path: string, body: object): Promise<void>;
  /** The process of the authority. */
  server: Child;
  stop(): Promise<void>;
}

/** Builds it where that was not done before, starts it and waits until it answers. */
export async function startPebble(options: PebbleOptions): Promise<Pebble> {
  const { processes, folder, ports, address = ADDRESS } = options;
  const programs = await buildGoTools('pebble');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const server = await serverCertificate();
  const config = writeConfig(options, server);
  const logFile = join(folder, 'pebble.log');
  const at = (port: number) => `${ADDRESS}:${port}`;
  // Without what makes a test of clients fail by chance, and without pauses.
  const env = { PATH: process.env.PATH, PEBBLE_VA_NOSLEEP: '1', PEBBLE_WFE_NONCEREJECT: '0', PEBBLE_AUTHZREUSE: '0' };
  const names = ['-dnsserver', at(ports.dns), '-management', at(ports.dnsManagement)];
  const nothingElse = ['-http01', '', '-https01', '', '-tlsalpn01', '', '-doh', ''];
  const family = address.includes(':')
    ? ['-defaultIPv4', '', '-defaultIPv6', address]
    : ['-defaultIPv4', address, '-defaultIPv6', ''];
  const children: Child[] = [];
  const start = (name: string, program: string, args: string[]) => {
    const child = processes.start({ name, command: join(programs, program), args, env, logFile });
    children.push(child);
    return child;
  };
  start('name server of Pebble', 'pebble-challtestsrv', [...names, ...nothingElse, ...family]);
  const authority = start('Pebble', 'pebble', ['-config', config, '-dnsserver', at(ports.dns)]);
  const management = `https://${at(ports.management)}`;
  const stop = async () => {
    for (const child of children.reverse()) await child.stop();
  };
  try {
    const rootPem = await answered(() => ask(`${management}/roots/0`, server.pem), children, logFile);
    await answered(() => ask(`https://${at(ports.acme)}/dir`, server.pem), children, logFile);
    await answered(
      () => ask(`http://${at(ports.dnsManagement)}/set-default-ipv4`, null, family4(address)),
      children,
      logFile,
    );
    return {
      url: `https://${at(ports.acme)}/dir`,
      caPem: server.pem,
      rootPem,
      dnsServer: at(ports.dns),
      dns: async (command, body) => void (await ask(`http://${at(ports.dnsManagement)}/${command}`, null, body)),
      manage: async (path, body) => void (await ask(`${management}/${path}`, server.pem, body)),
      server: authority,
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

const family4 = (address: string) => ({ ip: address.includes(':') ? '' : address });

function writeConfig(options: PebbleOptions, { pem, keyPem }: ServerCertificate): string {
  const { folder, ports, httpPort, external, lifeSeconds } = options;
  const file = (name: string, text: string) => {
    const path = join(folder, name);
    writeFileSync(path, text, { mode: 0o600 });
    return path;
  };
  const config = {
    listenAddress: `${ADDRESS}:${ports.acme}`,
    managementListenAddress: `${ADDRESS}:${ports.management}`,
    certificate: file('server.pem', pem),
    privateKey: file('server.key', keyPem),
    httpPort,
    tlsPort: ports.acme,
    keyAlgorithm: 'ecdsa',
    retryAfter: { authz: 1, order: 1 },
    ...(external ? { externalAccountBindingRequired: true, externalAccountMACKeys: external } : {}),
    ...(lifeSeconds ? { profiles: { default: { description: 'of this life', validityPeriod: lifeSeconds } } } : {}),
  };
  return file('pebble.json', JSON.stringify({ pebble: config }, null, 2));
}

interface ServerCertificate {
  pem: string;
  keyPem: string;
}

const P256 = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

/** It vouches for itself. */
async function serverCertificate(): Promise<ServerCertificate> {
  const keys = (await webcrypto.subtle.generateKey(P256, true, ['sign', 'verify'])) as webcrypto.CryptoKeyPair;
  const certificate = await X509CertificateGenerator.createSelfSigned(
    {
      serialNumber: `4a${randomBytes(15).toString('hex')}`,
      name: 'CN=Pebble on this machine',
      notBefore: new Date(Date.now() - YEAR_MS),
      notAfter: new Date(Date.now() + YEAR_MS),
      keys,
      signingAlgorithm: P256,
      extensions: [
        new BasicConstraintsExtension(true, 0, true),
        new KeyUsagesExtension(KeyUsageFlags.digitalSignature | KeyUsageFlags.keyCertSign, true),
        new SubjectAlternativeNameExtension([
          { type: 'ip', value: ADDRESS },
          { type: 'dns', value: 'localhost' },
        ]),
      ],
    },
    webcrypto,
  );
  const der = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey));
  const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  return { pem: certificate.toString('pem'), keyPem: key.export({ type: 'pkcs8', format: 'pem' }).toString() };
}

async function answered<T>(probe: () => Promise<T>, children: readonly Child[], logFile: string): Promise<T> {
  const deadline = Date.now() + START_MS;
  for (;;) {
    try {
      return await probe();
    } catch (cause) {
      const ended = children.find((child) => !child.running());
      if (!ended && Date.now() < deadline) {
        await delay(LOOK_MS);
        continue;
      }
      throw new Error(`${ended?.name ?? 'Pebble'} does not answer:\n${tail(logFile)}`, { cause });
    }
  }
}

/** GET, or POST of a body; the text of a successful answer. */
function ask(url: string, ca: string | null, body?: object): Promise<string> {
  return new Promise((resolve, reject) => {
    const send = ca === null ? plainRequest : tlsRequest;
    const options = {
      method: body ? 'POST' : 'GET',
      headers: { 'user-agent': 'edge-delivery-console' },
      agent: false,
      timeout: REQUEST_MS,
      ...(ca === null ? {} : { ca }),
    };
    const request = send(url, options, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part;
        if (text.length > MAX_BYTES) response.destroy(new Error('too long an answer'));
      });
      response.on('error', reject);
      response.on('end', () => {
        if (response.statusCode === 200) resolve(text);
        else reject(new Error(`${url}: ${response.statusCode} ${text.slice(0, 500)}`));
      });
    });
    request.on('timeout', () => request.destroy(new Error(`${url}: no answer`)));
    request.on('error', reject);
    request.end(body && JSON.stringify(body));
  });
}
