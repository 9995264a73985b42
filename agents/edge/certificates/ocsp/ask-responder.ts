// One question to a responder: plain HTTP to a public address, no redirects, bounded in time and size.
import { request } from 'node:http';
import { resolvePublic } from '../../../kit/public-address.ts';

const CONNECT_MS = 5_000;
const TOTAL_MS = 8_000;
const MAX_BYTES = 1024 * 1024;

/** The address to connect to for a host name; throws when it may not be connected to. */
export type Resolve = (host: string, timeoutMs: number) => Promise<string>;

/** The answer's body. Throws when there is none, or another status than 200. */
export async function askResponder(url: string, question: Buffer, resolve: Resolve = resolvePublic): Promise<Buffer> {
  const { protocol, hostname, port, pathname, search, host } = new URL(url);
  if (protocol !== 'http:') throw new Error('responders are asked over plain HTTP only');
  const endsAt = performance.now() + TOTAL_MS;
  const address = await resolve(hostname, CONNECT_MS);
  return new Promise((done, reject) => {
    const call = request({
      host: address,
      port: port === '' ? 80 : Number(port),
      path: `${pathname}${search}`,
      method: 'POST',
      agent: false,
      headers: { host, 'content-type': 'application/ocsp-request', 'content-length': question.length },
    });
    const fail = (problem: string): void => {
      call.destroy(new Error(`the responder ${problem}`));
    };
    const total = setTimeout(() => fail('is too slow'), endsAt - performance.now());
    const connecting = setTimeout(() => fail('cannot be reached'), CONNECT_MS);
    call.once('socket', (socket) => socket.once('connect', () => clearTimeout(connecting)));
    call.once('close', () => {
      clearTimeout(total);
      clearTimeout(connecting);
    });
    call.on('error', reject);
    call.once('response', (response) => {
      if (response.statusCode !== 200) {
        fail(`answers with status ${response.statusCode}`);
        return;
      }
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > MAX_BYTES) fail('answers with too much');
        else chunks.push(chunk);
      });
      response.once('error', reject);
      response.once('end', () => done(Buffer.concat(chunks)));
    });
    call.end(question);
  });
}
