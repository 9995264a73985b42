// TLS to the console with a pinned certificate authority. The pin is the SHA-256 of the authority's DER; the system store
// is never asked. Trust is established in two steps: a first handshake only to receive the chain and find the certificate
// whose hash is the pin, then every real connection trusts exactly this certificate and checks dates, usage and name.
import { createHash, createPublicKey, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { connect, type DetailedPeerCertificate } from 'node:tls';

const HANDSHAKE_TIMEOUT_MS = 10_000;
const MAX_CHAIN = 10;

export class PinError extends Error {
  override name = 'PinError';
}

export interface ServerAddress {
  /** https://host:port without a path. */
  url: string;
  host: string;
  port: number;
  /** Name the server's certificate must carry. */
  serverName: string;
}

/** Takes `https://host[:port]` apart; throws a TypeError for anything else. The port is 443 when missing, as everywhere. */
export function parseServerUrl(text: string, serverName?: string): ServerAddress {
  const url = URL.parse(text);
  const plain = url !== null && (url.pathname === '/' || url.pathname === '') && url.search === '' && url.hash === '';
  if (url?.protocol !== 'https:' || !plain || url.username !== '' || url.password !== '' || url.hostname === '') {
    throw new TypeError('the server must have the form https://host:port');
  }
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const port = url.port === '' ? 443 : Number(url.port);
  return { url: `https://${url.hostname}:${port}`, host, port, serverName: serverName ?? host };
}

/** The pin in its canonical form: 64 lower-case hex digits. Colons and a `sha256:` prefix are accepted. */
export function parsePin(text: string): string {
  const hex = text
    .replace(/^sha256:/i, '')
    .replaceAll(':', '')
    .toLowerCase();
  if (!/^[0-9a-f]{64}$/.test(hex)) throw new TypeError('the fingerprint must have 64 hexadecimal digits (SHA-256)');
  return hex;
}

export function sha256Hex(der: Uint8Array): string {
  return createHash('sha256').update(der).digest('hex');
}

/** SHA-256 of a PEM certificate's DER; throws when it is not a certificate. */
export function certificatePin(pem: string): string {
  return sha256Hex(new X509Certificate(pem).raw);
}

/**
 * PEM of the authority in the chain presented by the server whose hash is `pin`. Throws PinError when the chain holds no
 * such certificate or it is no authority. Nothing but the handshake is sent; the connection is not used further.
 */
export function fetchPinnedAuthority(server: ServerAddress, pin: string, signal?: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({
      host: server.host,
      port: server.port,
      ...(isIP(server.serverName) ? {} : { servername: server.serverName }),
      rejectUnauthorized: false,
      minVersion: 'TLSv1.2',
      ALPNProtocols: ['h2', 'http/1.1'],
    });
    const finish = (error: Error | undefined, pem?: string): void => {
      signal?.removeEventListener('abort', aborted);
      socket.destroy();
      if (error) reject(error);
      else resolve(pem!);
    };
    const aborted = (): void => finish(new Error('the handshake was canceled'));
    signal?.addEventListener('abort', aborted, { once: true });
    socket.setTimeout(HANDSHAKE_TIMEOUT_MS, () =>
      finish(new Error(`no TLS handshake within ${HANDSHAKE_TIMEOUT_MS} ms`)),
    );
    socket.once('error', (error) => finish(error));
    socket.once('close', () => finish(new Error('the server closed the connection during the handshake')));
    socket.once('secureConnect', () => {
      const authority = findPinned(socket.getPeerCertificate(true), pin);
      if (authority === undefined) {
        finish(new PinError('the server presented no certificate with the pinned fingerprint'));
      } else if (!authority.ca) {
        finish(new PinError('the certificate with the pinned fingerprint is not a certificate authority'));
      } else {
        finish(undefined, authority.toString());
      }
    });
  });
}

function findPinned(leaf: DetailedPeerCertificate, pin: string): X509Certificate | undefined {
  let current: DetailedPeerCertificate | undefined = leaf;
  for (let depth = 0; current?.raw !== undefined && depth < MAX_CHAIN; depth++) {
    if (sha256Hex(current.raw) === pin) return new X509Certificate(current.raw);
    current = current.issuerCertificate === current ? undefined : current.issuerCertificate;
  }
  return undefined;
}

/** Options of every real connection: exactly one trusted authority, name checked, TLS 1.2 or later. */
export function pinnedTlsOptions(server: ServerAddress, authorityPem: string) {
  return {
    ca: [authorityPem],
    rejectUnauthorized: true,
    minVersion: 'TLSv1.2' as const,
    ...(isIP(server.serverName) ? {} : { servername: server.serverName }),
    ...(server.serverName === server.host ? {} : { checkServerIdentity: checkAgainst(server.serverName) }),
  };
}

function checkAgainst(name: string) {
  return (_host: string, certificate: { raw: Buffer }): Error | undefined => {
    const x509 = new X509Certificate(certificate.raw);
    const matches = isIP(name) ? x509.checkIP(name) : x509.checkHost(name);
    return matches === undefined
      ? new Error(`the certificate of the server does not contain the name ${name}`)
      : undefined;
  };
}

/** Whether the certificate was issued for this private key. */
export function keyMatches(certificatePem: string, keyPem: string): boolean {
  const wanted = createPublicKey(keyPem).export({ type: 'spki', format: 'der' });
  return new X509Certificate(certificatePem).publicKey.export({ type: 'spki', format: 'der' }).equals(wanted);
}
