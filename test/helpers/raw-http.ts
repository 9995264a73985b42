// Requests that no HTTP client would send: exact bytes over a socket.
import { connect } from 'node:net';

export interface RawAnswer {
  status: number;
  headers: Map<string, string>;
  body: string;
}

const TIMEOUT_MS = 15_000;

/** Sends the text and reads one answer; the connection is closed afterwards. */
export function rawRequest(url: string, text: string | Buffer, timeoutMs = TIMEOUT_MS): Promise<RawAnswer> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => socket.write(text));
    let received = Buffer.alloc(0);
    const finish = () => {
      const answer = parse(received);
      if (answer === null) return false;
      socket.destroy();
      resolve(answer);
      return true;
    };
    socket.setTimeout(timeoutMs, () => socket.destroy(new Error('no answer in time')));
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk]);
      finish();
    });
    socket.on('end', () => {
      if (!finish()) reject(new Error(`the connection ended after ${JSON.stringify(received.toString())}`));
    });
    socket.on('error', reject);
  });
}

function parse(bytes: Buffer): RawAnswer | null {
  const text = bytes.toString('latin1');
  const end = text.indexOf('\r\n\r\n');
  if (end === -1) return null;
  const [statusLine = '', ...lines] = text.slice(0, end).split('\r\n');
  const headers = new Map(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  );
  const length = Number(headers.get('content-length') ?? '0');
  const body = text.slice(end + 4);
  if (body.length < length) return null;
  return { status: Number(statusLine.split(' ')[1]), headers, body: body.slice(0, length) };
}
