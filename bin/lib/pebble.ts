// Pebble, the certificate authority that Let's Encrypt has for tests, with the name server that it asks. It keeps nothing:
// its root is another at each start.
import 'reflect-metadata';
import { createPrivateKey, randomBytes, webcrypto } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { request as plainRequest } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { isIP } from 'node:net';
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

export interface AuthorityOptions {
  /** Who starts and stops its processes. */
  processes: Processes;
  /** For its certificate, configuration and log; made if it is not there. */
  folder: string;
  /** Free ports, which it listens on. */
  ports: Record<'acme' | 'management', number>;
  /** Where this process asks it. Default 127.0.0.1. */
  address?: string;
  /** Where it listens. Default `address`. */
  listen?: string;
  /** Where it asks for answers of http-01, as others do on port 80. */
  httpPort: number;
  /** The server of names that it asks, as address:port. */
  dnsServer: string;
  /** Names of its own server, the first of which is in the address of its directory. Default `address`. */
  names?: readonly string[];
  /** Words that run a program elsewhere, such as `ip netns exec NAME`. */
  exec?: readonly string[];
  /** External accounts by their ids, with keys in base64url; required when given. */
  external?: Readonly<Record<string, string>>;
  /** Life of certificates, seconds. Default 90 days. */
  lifeSeconds?: number;
  /** Responder (OCSP) that its certificates name. Default: none. */
  ocspUrl?: string;
}

export interface PebbleOptions
  extends Omit<AuthorityOptions, 'ports' | 'address' | 'listen' | 'dnsServer' | 'names' | 'exec'> {
  /** Free ports of this machine; it listens on 127.0.0.1 alone. `dns` is UDP and TCP. */
  ports: Record<'acme' | 'management' | 'dns' | 'dnsManagement', number>;
  /** What every name leads to for which nothing else was said. Default 127.0.0.1. */
  address?: string;
}

export interface Authority {
  /** Of the directory. */
  url: string;
  /** PEM of what vouches for its server. */
  caPem: string;
  /** PEM of the root of what it issues. */
  rootPem: string;
  /** Tells Pebble something, such as `set-renewal-info/`, or asks it, such as for `intermediates/0`. */
  manage(path: string, body?: object): Promise<string>;
  /** The process of the authority. */
  server: Child;
  stop(): Promise<void>;
}

export interface Pebble extends Authority {
  /** Where its name server answers, as address:port. */
  dnsServer: string;
  /** Tells the name server something, such as `add-a` with { host: 'a.example.', addresses: ['192.0.2.1'] }. */
  dns(command: string, body: object): Promise<void>;
}

/** Builds it where that was not done before, starts it with a name server of its own and waits until both answer. */
export async function startPebble(options: PebbleOptions): Promise<Pebble> {
  const { processes, folder, ports, address = ADDRESS } = options;
  const programs = await buildGoTools('pebble');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const at = (port: number) => `${ADDRESS}:${port}`;
  const names = ['-dnsserver', at(ports.dns), '-management', at(ports.dnsManagement)];
  const nothingElse = ['-http01', '', '-https01', '', '-tlsalpn01', '', '-doh', ''];
  const family = address.includes(':')
    ? ['-defaultIPv4', '', '-defaultIPv6', address]
    : ['-defaultIPv4', address, '-defaultIPv6', ''];
  const logFile = join(folder, 'pebble-names.log');
  const nameServer = processes.start({
    name: 'name server of Pebble',
    command: join(programs, 'pebble-challtestsrv'),
    args: [...names, ...nothingElse, ...family],
    env: { PATH: process.env.PATH },
    logFile,
  });
  const manageNames = (command: string, body: object) =>
    ask(`http://${at(ports.dnsManagement)}/${command}`, null, body);
  try {
    const authority = await startAuthority({ ...options, address: ADDRESS, dnsServer: at(ports.dns) });
    const stop = async () => {
      await authority.stop();
      await nameServer.stop();
    };
    try {
      await answered(() => manageNames('set-default-ipv4', family4(address)), nameServer, logFile);
    } catch (error) {
      await stop();
      throw error;
    }
    return {
      ...authority,
      dnsServer: at(ports.dns),
      dns: async (command, body) => void (await manageNames(command, body)),
      stop,
    };
  } catch (error) {
    await nameServer.stop();
    throw error;
  }
}

/** Pebble alone, which asks a name server that is there already. */
export async function startAuthority(options: AuthorityOptions): Promise<Authority> {
  const { processes, folder, ports, address = ADDRESS, dnsServer, names = [address], exec = [] } = options;
  const programs = await buildGoTools('pebble');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const certificate = await serverCertificate([...new Set([...names, address])]);
  const config = writeConfig(options, certificate);
  const logFile = join(folder, 'pebble.log');
  // Without what makes a test of clients fail by chance, and without pauses.
  const env = { PATH: process.env.PATH, PEBBLE_VA_NOSLEEP: '1', PEBBLE_WFE_NONCEREJECT: '0', PEBBLE_AUTHZREUSE: '0' };
  const [command = '', ...args] = [...exec, join(programs, 'pebble'), '-config', config, '-dnsserver', dnsServer];
  const server = processes.start({ name: 'Pebble', command, args, env, logFile });
  const management = `https://${address}:${ports.management}`;
  const { pem: caPem } = certificate;
  try {
    const rootPem = await answered(() => ask(`${management}/roots/0`, caPem), server, logFile);
    await answered(() => ask(`https://${address}:${ports.acme}/dir`, caPem), server, logFile);
    return {
      url: `https://${names[0]}:${ports.acme}/dir`,
      caPem,
      rootPem,
      manage: (path, body) => ask(`${management}/${path}`, caPem, body),
      server,
      stop: () => server.stop(),
    };
  } catch (error) {
    await server.stop();
    throw error;
  }
}

const family4 = (address: string) => ({ ip: address.includes(':') ? '' : address });

function writeConfig(options: AuthorityOptions, { pem, keyPem }: ServerCertificate): string {
  const { folder, ports, address = ADDRESS, listen = address, httpPort, external, lifeSeconds, ocspUrl } = options;
  const file = (name: string, text: string) => {
    const path = join(folder, name);
    writeFileSync(path, text, { mode: 0o600 });
    return path;
  };
  const config = {
    listenAddress: `${listen}:${ports.acme}`,
    managementListenAddress: `${listen}:${ports.management}`,
    certificate: file('server.pem', pem),
    privateKey: file('server.key', keyPem),
    httpPort,
    tlsPort: ports.acme,
    // Whoever answers as its responder needs its key, which it tells only where that is RSA.
    keyAlgorithm: ocspUrl ? 'rsa' : 'ecdsa',
    retryAfter: { authz: 1, order: 1 },
    ...(ocspUrl ? { ocspResponderURL: ocspUrl } : {}),
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
async function serverCertificate(names: readonly string[]): Promise<ServerCertificate> {
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
        new SubjectAlternativeNameExtension(
          ['localhost', ...names].map((value) => ({
            type: isIP(value) === 0 ? ('dns' as const) : ('ip' as const),
            value,
          })),
        ),
      ],
    },
    webcrypto,
  );
  const der = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey));
  const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  return { pem: certificate.toString('pem'), keyPem: key.export({ type: 'pkcs8', format: 'pem' }).toString() };
}

async function answered<T>(probe: () => Promise<T>, child: Child, logFile: string): Promise<T> {
  const deadline = Date.now() + START_MS;
  for (;;) {
    try {
      return await probe();
    } catch (cause) {
      if (child.running() && Date.now() < deadline) {
        await delay(LOOK_MS);
        continue;
      }
      throw new Error(`${child.name} does not respond:\n${tail(logFile)}`, { cause });
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
        if (text.length > MAX_BYTES) response.destroy(new Error('response too long'));
      });
      response.on('error', reject);
      response.on('end', () => {
        if (response.statusCode === 200) resolve(text);
        else reject(new Error(`${url}: ${response.statusCode} ${text.slice(0, 500)}`));
      });
    });
    request.on('timeout', () => request.destroy(new Error(`${url}: no response`)));
    request.on('error', reject);
    request.end(body && JSON.stringify(body));
  });
}
