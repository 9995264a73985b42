// The demo's origin: the website behind the edge. A page, /echo (what arrived, as JSON), /events (server-sent events),
// /ws (a WebSocket that echoes text) and /status/NNN. Usage: node bin/demo-origin.ts PORT
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';

const WEBSOCKET_GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const MAX_ECHOED_BODY = 1 << 20;
const EVENT_EVERY_MS = 1000;

const page = `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Demo site</title>
<style>body{font:16px/1.5 system-ui;max-width:40rem;margin:4rem auto;padding:0 1rem}code{background:#eee}</style>
<h1>It works</h1>
<p>This page came from the demo's origin through the edge.</p>
<p>Also here: <code>/echo</code>, <code>/events</code>, <code>/ws</code>, <code>/status/503</code>.</p>
</html>
`;

const server = createServer(async (request, response) => {
  const { pathname } = new URL(request.url ?? '/', 'http://origin');
  if (pathname === '/echo') {
    const body = await readBody(request);
    const { method, url, headers } = request;
    response.writeHead(200, { 'content-type': 'application/json', 'cache-control': 'no-store' });
    response.end(`${JSON.stringify({ method, url, headers, body }, null, 2)}\n`);
    return;
  }
  if (pathname === '/events') {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    let count = 0;
    const send = () => response.write(`id: ${++count}\ndata: ${new Date().toISOString()}\n\n`);
    const timer = setInterval(send, EVENT_EVERY_MS);
    response.on('close', () => clearInterval(timer));
    send();
    return;
  }
  const status = /^\/status\/([2-5]\d\d)$/.exec(pathname)?.[1];
  if (status) {
    response.writeHead(Number(status), { 'content-type': 'text/plain' }).end(`${status}\n`);
    return;
  }
  const found = pathname === '/' || pathname === '/index.html';
  response.writeHead(found ? 200 : 404, { 'content-type': 'text/html; charset=utf-8' });
  response.end(found ? page : '<!doctype html><title>Not found</title><h1>Not found</h1>\n');
});

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes <= MAX_ECHOED_BODY) chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

server.on('upgrade', (request: IncomingMessage, socket: Duplex) => {
  const key = request.headers['sec-websocket-key'];
  if (!key || request.headers.upgrade?.toLowerCase() !== 'websocket') {
    socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n');
    return;
  }
  const accept = createHash('sha1').update(`${key}${WEBSOCKET_GUID}`).digest('base64');
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
  );
  let pending = Buffer.alloc(0);
  socket.on('error', () => socket.destroy());
  socket.on('data', (chunk: Buffer) => {
    pending = Buffer.concat([pending, chunk]);
    for (let frame = takeFrame(pending); frame; frame = takeFrame(pending)) {
      pending = pending.subarray(frame.length);
      if (frame.opcode === 8) {
        socket.end(Buffer.from([0x88, 0]));
        return;
      }
      if (frame.opcode === 1) socket.write(Buffer.concat([Buffer.from([0x81, frame.payload.length]), frame.payload]));
    }
    // Longer messages than a demo needs end the connection instead of filling memory.
    if (pending.length > 1024) socket.destroy();
  });
});

/** The first complete masked frame of up to 125 bytes. */
function takeFrame(buffer: Buffer): { opcode: number; payload: Buffer; length: number } | undefined {
  if (buffer.length < 6) return undefined;
  const size = buffer[1]! & 0x7f;
  if (size > 125 || buffer.length < 6 + size) return undefined;
  const mask = buffer.subarray(2, 6);
  const payload = Buffer.from(buffer.subarray(6, 6 + size).map((byte, index) => byte ^ mask[index % 4]!));
  return { opcode: buffer[0]! & 0x0f, payload, length: 6 + size };
}

const port = Number(process.argv[2]);
server.listen(port, '127.0.0.1');
process.on('SIGTERM', () => process.exit(0));
