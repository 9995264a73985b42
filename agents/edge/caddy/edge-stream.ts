// Server streams of Caddy's EdgeService over the unix socket: Connect's streaming protocol, one connection per stream.
import { type IncomingMessage, request } from 'node:http';
import { EnvelopeReader, encodeEnvelope } from '../../kit/envelope.ts';
import { EdgeError, refusal, stated } from './edge-error.ts';

const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;
const MAX_REFUSAL_BYTES = 64 * 1024;

/**
 * The payloads of a stream until Caddy ends it. Throws EdgeError when Caddy refuses or is gone, and when the signal
 * aborts.
 */
export async function* serverStream(
  socketPath: string,
  path: string,
  message: Uint8Array,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  try {
    const response = await open(socketPath, path, encodeEnvelope(message), signal);
    if (response.statusCode !== 200) throw refusal(response.statusCode ?? 0, await readAll(response));
    const reader = new EnvelopeReader(MAX_MESSAGE_BYTES);
    for await (const chunk of response) {
      for (const { last, payload } of reader.push(chunk as Buffer)) {
        if (!last) yield payload;
        else {
          const error = stated((JSON.parse(payload.toString('utf8')) as { error?: unknown }).error);
          if (error) throw error;
          return;
        }
      }
    }
  } catch (error) {
    if (error instanceof EdgeError) throw error;
    throw new EdgeError('unavailable', `the data plane does not respond: ${(error as Error).message}`, error);
  }
}

function open(socketPath: string, path: string, body: Buffer, signal: AbortSignal): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const call = request({
      socketPath,
      agent: false,
      method: 'POST',
      path,
      signal,
      headers: {
        host: 'edge',
        'content-type': 'application/connect+proto',
        'content-length': body.length,
        'connect-protocol-version': '1',
      },
    });
    // Stays for the errors that follow an answer; the response reports them itself.
    call.on('error', reject);
    call.once('response', resolve);
    call.end(body);
  });
}

async function readAll(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response) {
    bytes += (chunk as Buffer).length;
    if (bytes > MAX_REFUSAL_BYTES) break;
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks);
}
