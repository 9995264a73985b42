// One question to a responder: plain HTTP to a public address, no redirects, bounded in time and size.
import { request } from 'node:http';
import { resolveChecked } from '../../../../proto/address-policy.ts';
import { errorText } from '../../../kit/log.ts';

const MAX_BYTES = 1024 * 1024;

/** The address to connect to for a host name; throws when it may not be connected to. */
export type Resolve = (host: string, timeoutMs: number) => Promise<string>;

export interface Asking {
  resolve: Resolve;
  connectMs: number;
  /** For all of it. */
  totalMs: number;
}

/** A public address of the host. */
async function resolvePublic(host: string, timeoutMs: number): Promise<string> {
  return (await resolveChecked(host, [], timeoutMs))[0]!;
}

export const ASKING: Asking = { resolve: resolvePublic, connectMs: 5_000, totalMs: 8_000 };

/** The responder cannot be asked at the moment, whatever the question is. */
export class ResponderDown extends Error {}

/** The answer's body. Throws when there is none, or another status than 200. */
export async function askResponder(url: string, question: Buffer, asking: Asking = ASKING): Promise<Buffer> {
  const { protocol, hostname, port, pathname, search, host } = new URL(url);
  if (protocol !== 'http:') throw new Error('only plain-HTTP OCSP responders are supported');
  const endsAt = performance.now() + asking.totalMs;
  const address = await asking.resolve(hostname, asking.connectMs).catch((error) => {
    throw new ResponderDown(errorText(error));
  });
  return new Promise((done, reject) => {
    const call = request({
      host: address,
      port: port === '' ? 80 : Number(port),
      path: `${pathname}${search}`,
      method: 'POST',
      agent: false,
      headers: { host, 'content-type': 'application/ocsp-request', 'content-length': question.length },
    });
    const down = (problem: string): void => {
      call.destroy(new ResponderDown(`the OCSP responder ${problem}`));
    };
    const total = setTimeout(() => down('is too slow'), endsAt - performance.now());
    const connecting = setTimeout(() => down('cannot be reached'), asking.connectMs);
    call.once('socket', (socket) => socket.once('connect', () => clearTimeout(connecting)));
    call.once('close', () => {
      clearTimeout(total);
      clearTimeout(connecting);
    });
    const failed = (error: Error): void => {
      reject(error instanceof AnswerRefused ? error : new ResponderDown(error.message));
    };
    call.on('error', failed);
    call.once('response', (response) => {
      const { statusCode = 0 } = response;
      if (statusCode === 429 || statusCode >= 500) {
        down(`responds with status ${statusCode}`);
        return;
      }
      if (statusCode !== 200) {
        call.destroy(new AnswerRefused(`the OCSP responder responds with status ${statusCode}`));
        return;
      }
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > MAX_BYTES) call.destroy(new AnswerRefused('the OCSP response is too large'));
        else chunks.push(chunk);
      });
      response.once('error', failed);
      response.once('end', () => done(Buffer.concat(chunks)));
    });
    call.end(question);
  });
}

/** The responder answers, though not this question. */
class AnswerRefused extends Error {}
