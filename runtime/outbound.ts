// HTTP to servers that somebody named: every address is checked before anything connects, and what connects takes the
// addresses that were checked. No redirects, no proxies, no connection is used twice; time and size are bounded.
import { type IncomingHttpHeaders, type IncomingMessage, request as plainRequest } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { AddressRefused, resolveChecked } from '../proto/address-policy.ts';

/** Ranges of private networks and this machine. */
export const PRIVATE_RANGES: readonly string[] = [
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '::1/128',
  'fc00::/7',
];

export interface OutboundRequest {
  /** http or https, without credentials. */
  url: URL;
  method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  headers?: Readonly<Record<string, string>>;
  body?: string | Buffer;
  /** PEM of the authorities that vouch for the server; those of the system unless given. */
  ca?: readonly string[] | undefined;
  /** CIDRs that the address policy does not hold for. */
  allow: readonly string[];
  /** For everything: resolving, connecting, the answer. */
  timeoutMs: number;
  /** Largest body of an answer. */
  maxBytes: number;
  /** Ends the request early. */
  signal?: AbortSignal | undefined;
}

export interface OutboundAnswer {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

/** Why there is no answer. Of a request that was sent, nobody knows whether it was worked on. */
export class OutboundFailed extends Error {
  /** `refused`: an address that the policy forbids; `too_large`: the answer; `unreachable`: everything else. */
  readonly reason: 'refused' | 'unreachable' | 'timeout' | 'too_large' | 'tls';
  /** Whether the server may have received the request. */
  readonly sent: boolean;

  constructor(reason: OutboundFailed['reason'], cause?: unknown, sent = false) {
    super(`outbound request: ${reason}`, { cause });
    this.name = 'OutboundFailed';
    this.reason = reason;
    this.sent = sent;
  }
}

/** Sends one request; any status is an answer. Throws {@link OutboundFailed}. */
export async function sendOutbound(asked: OutboundRequest): Promise<OutboundAnswer> {
  const deadline = AbortSignal.timeout(asked.timeoutMs);
  const signal = asked.signal ? AbortSignal.any([deadline, asked.signal]) : deadline;
  const way = { sent: false };
  try {
    const addresses = await resolveChecked(asked.url.hostname, asked.allow, asked.timeoutMs);
    return await exchange(asked, addresses, signal, way);
  } catch (error) {
    if (error instanceof OutboundFailed) throw error;
    throw new OutboundFailed(reasonOf(error, deadline.aborted), error, way.sent);
  }
}

function exchange(
  { url, method, headers = {}, body, ca, maxBytes }: OutboundRequest,
  addresses: readonly string[],
  signal: AbortSignal,
  way: { sent: boolean },
): Promise<OutboundAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<OutboundAnswer>();
  const answers = addresses.map((address) => ({ address, family: isIP(address) }));
  const checked: LookupFunction = (_host, { all }, found) =>
    all ? found(null, answers) : found(null, answers[0]!.address, answers[0]!.family);
  const send = url.protocol === 'https:' ? tlsRequest : plainRequest;
  const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
  const request = send(url, {
    method,
    headers: { 'user-agent': 'edge-delivery-console', ...headers, ...length },
    agent: false,
    lookup: checked,
    signal,
    ...(ca ? { ca: [...ca] } : {}),
  });
  request.on('error', reject);
  request.on('socket', (socket) => {
    // The request is written as soon as the connection is there.
    socket.once(url.protocol === 'https:' ? 'secureConnect' : 'connect', () => {
      way.sent = true;
    });
  });
  request.on('response', (response) => {
    read(response, maxBytes).then((read) => {
      resolve({ status: response.statusCode ?? 0, headers: response.headers, body: read });
    }, reject);
  });
  request.end(body);
  return promise.finally(() => request.destroy());
}

async function read(response: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes) throw new OutboundFailed('too_large', undefined, true);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function reasonOf(error: unknown, timedOut: boolean): OutboundFailed['reason'] {
  if (error instanceof AddressRefused) {
    if (error.reason === 'forbidden') return 'refused';
    return error.reason === 'timeout' ? 'timeout' : 'unreachable';
  }
  if (timedOut) return 'timeout';
  const { code = '' } = (error ?? {}) as { code?: string };
  return /^(ERR_TLS|ERR_SSL|CERT_|UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO|EPROTO)/.test(code) ? 'tls' : 'unreachable';
}
