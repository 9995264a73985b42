// Asks the edge over and over as one visitor and says when an answer first satisfies a condition.
import http from 'node:http';
import tls from 'node:tls';
import { clockMs } from '../fleet/fleet.ts';

export interface ProbeTarget {
  /** host:port of the edge. */
  edge: string;
  host: string;
  path?: string;
  headers?: Record<string, string>;
}

interface Answer {
  status: number;
  body: string;
  headers: http.IncomingHttpHeaders;
}

const PAUSE_MS = 1;
const LIMIT_MS = 30_000;

/** Unix ms of the first answer that satisfies `done`. Keeps one connection; asks again 1 ms after each answer. */
export async function firstAnswer(
  target: ProbeTarget,
  done: (status: number, body: string, headers: http.IncomingHttpHeaders) => boolean,
): Promise<number> {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  const deadline = clockMs() + LIMIT_MS;
  try {
    for (;;) {
      const { status, body, headers } = await get(agent, target).catch(retriable);
      const now = clockMs();
      if (done(status, body, headers)) return now;
      if (now > deadline) throw new Error(`the edge still answers ${status}`);
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  } finally {
    agent.destroy();
  }
}

/** A new ban also ends open connections: asked again on a new one, as a client would. */
function retriable(error: unknown): Answer {
  if ((error as { code?: string }).code === 'ECONNRESET') return { status: 0, body: '', headers: {} };
  throw error;
}

/** Unix ms of the first handshake in which the certificate with this fingerprint is shown; asks again 1 ms after each. */
export async function firstShown(edge: string, host: string, fingerprint: Buffer): Promise<number> {
  const deadline = clockMs() + LIMIT_MS;
  for (;;) {
    const shown = await shownAt(edge, host);
    const now = clockMs();
    if (shown.equals(fingerprint)) return now;
    if (now > deadline) throw new Error(`the edge does not show the new certificate of ${host}`);
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

/** SHA-256 of the leaf that is shown for a name. */
function shownAt(edge: string, servername: string): Promise<Buffer> {
  const [host, port] = splitAddress(edge);
  return new Promise((resolve, reject) => {
    const socket = tls.connect({ host, port, servername, rejectUnauthorized: false }, () => {
      const { fingerprint256 } = socket.getPeerCertificate();
      socket.destroy();
      resolve(Buffer.from(fingerprint256.replaceAll(':', ''), 'hex'));
    });
    socket.setTimeout(5000, () => socket.destroy(new Error('the edge does not answer')));
    socket.on('error', reject);
  });
}

function get(agent: http.Agent, target: ProbeTarget): Promise<Answer> {
  const [hostname, port] = splitAddress(target.edge);
  return new Promise((resolve, reject) => {
    const request = http.get(
      { agent, hostname, port, path: target.path ?? '/', headers: { ...target.headers, host: target.host } },
      (response) => {
        let body = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => {
          body += chunk;
        });
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body, headers: response.headers }));
        response.on('error', reject);
      },
    );
    request.setTimeout(5000, () => request.destroy(new Error('the edge does not answer')));
    request.on('error', reject);
  });
}

function splitAddress(address: string): [string, number] {
  const at = address.lastIndexOf(':');
  return [address.slice(0, at).replace(/^\[|\]$/g, ''), Number(address.slice(at + 1))];
}
