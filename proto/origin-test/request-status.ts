// One GET over a connection that is open already, up to the headers of the response.
import { request } from 'node:http';
import { connect } from 'node:http2';
import type { Duplex } from 'node:stream';
import { StepFailed } from './failures.ts';

export interface StatusRequest {
  scheme: 'http' | 'https';
  /** Host, with a port if it is not the usual one. */
  authority: string;
  path: string;
  http2: boolean;
}

const AGENT = 'edge-delivery-console';

/** Answers the status; rejects with the connection's error. */
export function requestStatus(stream: Duplex, asked: StatusRequest): Promise<number> {
  return asked.http2 ? overHttp2(stream, asked) : overHttp1(stream, asked);
}

function overHttp1(stream: Duplex, { authority, path }: StatusRequest): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const sent = request({
    // The connection is in the request's own hands: no agent.
    createConnection: () => stream,
    path,
    headers: { host: authority, 'user-agent': AGENT, accept: '*/*', connection: 'close' },
  });
  sent.on('error', reject);
  sent.on('response', (response) => {
    response.on('error', () => undefined);
    resolve(response.statusCode ?? 0);
  });
  sent.end();
  return promise.finally(() => sent.destroy());
}

function overHttp2(stream: Duplex, { scheme, authority, path }: StatusRequest): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const session = connect(`${scheme}://${authority}`, { createConnection: () => stream });
  session.on('error', reject).on('close', () => reject(new StepFailed('closed')));
  const sent = session.request({ ':path': path, 'user-agent': AGENT }, { endStream: true });
  sent.on('error', reject);
  sent.on('response', (headers) => resolve(headers[':status'] ?? 0));
  return promise.finally(() => session.destroy());
}
