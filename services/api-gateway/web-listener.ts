// The HTTP server of the web port: bounds of time and size, and what is answered to what is no HTTP.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { connectionLimit } from '../../runtime/connection-limit.ts';
import { DRAIN_MS, type Listener } from '../../runtime/listener.ts';
import type { Runtime } from '../../runtime/runtime.ts';

const HEADERS_MS = 15_000;
/** Longest time for a whole request, its body included. */
const REQUEST_MS = 60_000;
/** Above the idle time of the usual reverse proxies, so that they close first. */
const IDLE_MS = 75_000;
const MOST_HEADERS = 100;

export type Handle = (request: IncomingMessage, response: ServerResponse) => void;

export function webListener(runtime: Runtime, handle: Handle): Listener {
  const { host, port, connectionsPerAddress } = runtime.env;
  const server = createServer({ keepAlive: true, noDelay: true }, handle);
  server.headersTimeout = HEADERS_MS;
  server.requestTimeout = REQUEST_MS;
  server.keepAliveTimeout = IDLE_MS;
  server.maxHeadersCount = MOST_HEADERS;
  server.on('connection', connectionLimit(runtime, 'web', connectionsPerAddress));
  // Whoever waits to be asked for the body gets judged by its headers first.
  server.on('checkContinue', handle);
  server.on('clientError', refuse);
  return {
    name: 'web',
    open: () =>
      new Promise((resolve, reject) => {
        server.once('error', (cause: NodeJS.ErrnoException) =>
          reject(new Error(`the web port ${host}:${port} cannot be opened (${cause.code})`, { cause })),
        );
        server.listen(port, host, () => {
          const { address, port: actual } = server.address() as AddressInfo;
          resolve({ host: address, port: actual });
        });
      }),
    close: () => closeServer(server),
  };
}

async function closeServer(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeIdleConnections();
  const timer = setTimeout(() => server.closeAllConnections(), DRAIN_MS);
  await closed;
  clearTimeout(timer);
}

const REFUSALS: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
};

function refuse(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const body = '{"error":"bad_request"}';
  socket.end(
    `HTTP/1.1 ${REFUSALS[error.code ?? ''] ?? '400 Bad Request'}\r\nConnection: close\r\nCache-Control: no-store\r\n` +
      `Content-Type: application/json; charset=utf-8\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
}
