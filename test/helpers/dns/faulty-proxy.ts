// A proxy in front of a server of names or the API of a provider that spoils single exchanges which change something.
import { createServer as createHttp, request as httpRequest, type IncomingMessage, type Server } from 'node:http';
import { type AddressInfo, connect, createServer as createTcp, type Socket } from 'node:net';

export type Fault =
  /** The request is not passed on, and nothing comes back. */
  | 'lost'
  /** The request takes effect, and nothing comes back. */
  | 'unanswered'
  /** The request takes effect, and the connection breaks. */
  | 'reset'
  /** The request takes effect, and a gateway says 502. HTTP only. */
  | 'gateway'
  /** The request is not passed on: too many of them. HTTP only. */
  | 'limited'
  /** The request takes effect, and a page comes back. HTTP only. */
  | 'garbage';

export interface SeenRequest {
  method: string;
  /** With the query. */
  path: string;
  headers: IncomingMessage['headers'];
  body: string;
}

/** What a provider sends when the rate is limited. */
export interface LimitedResponse {
  status: number;
  headers: Record<string, string>;
  body: string;
}

export interface FaultyProxy {
  port: number;
  /** Faults of the next requests that change something, one each. */
  faults: Fault[];
  /** Nothing comes back on requests that change nothing. */
  mute: boolean;
  /** Requests that change something and reached the server. */
  writes: number;
  close(): Promise<void>;
}

export async function faultyHttp(
  target: number,
  isWrite: (request: SeenRequest) => boolean,
  limited: LimitedResponse = { status: 429, headers: { 'retry-after': '1' }, body: '{}' },
): Promise<FaultyProxy> {
  const server = createHttp(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const { method = 'GET', url: path = '/', headers } = request;
    const writes = isWrite({ method, path, headers, body: body.toString() });
    if (!writes && proxy.mute) return;
    const fault = writes ? proxy.faults.shift() : undefined;
    if (fault === 'lost') return;
    if (fault === 'limited') {
      response.writeHead(limited.status, limited.headers).end(limited.body);
      return;
    }
    if (writes) proxy.writes++;
    const upstream = httpRequest({ host: '127.0.0.1', port: target, method, path, headers });
    upstream.on('error', () => response.destroy());
    upstream.on('response', async (answer) => {
      const parts: Buffer[] = [];
      for await (const part of answer) parts.push(part as Buffer);
      if (fault === 'unanswered') return;
      if (fault === 'reset') request.socket.destroy();
      else if (fault === 'gateway') response.writeHead(502).end('<html>Bad Gateway</html>');
      else if (fault === 'garbage')
        response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Welcome</html>');
      else {
        const { 'transfer-encoding': _chunked, ...kept } = answer.headers;
        response.writeHead(answer.statusCode!, kept).end(Buffer.concat(parts));
      }
    });
    upstream.end(body);
  });
  const proxy = proxyOf(server, () => server.closeAllConnections());
  return listening(server, proxy);
}

/** For messages with their length before them. */
export async function faultyDns(target: number): Promise<FaultyProxy> {
  const open = new Set<Socket>();
  const server = createTcp((socket) => {
    const upstream = connect(target, '127.0.0.1');
    for (const one of [socket, upstream]) {
      open.add(one);
      one.on('error', () => undefined);
      one.on('close', () => {
        open.delete(one);
        if (one === upstream) socket.end();
        else upstream.destroy();
      });
    }
    let fault: Fault | undefined;
    let isQuiet = false;
    let read: Buffer = Buffer.alloc(0);
    socket.on('data', (chunk: Buffer) => {
      read = Buffer.concat([read, chunk]);
      while (read.length >= 2 && read.length >= 2 + read.readUInt16BE(0)) {
        const end = 2 + read.readUInt16BE(0);
        const message = read.subarray(0, end);
        read = read.subarray(end);
        const isUpdate = ((message[4]! >> 3) & 15) === 5;
        isQuiet = !isUpdate && proxy.mute;
        if (isUpdate) fault = proxy.faults.shift();
        if (fault === 'lost' || isQuiet) continue;
        if (isUpdate) proxy.writes++;
        upstream.write(message);
      }
    });
    upstream.on('data', (chunk: Buffer) => {
      if (fault === 'unanswered' || isQuiet) return;
      if (fault === 'reset') socket.destroy();
      else socket.write(chunk);
    });
  });
  const proxy = proxyOf(server as unknown as Server, () => {
    for (const socket of open) socket.destroy();
  });
  return listening(server as unknown as Server, proxy);
}

function proxyOf(server: Server, cut: () => void): FaultyProxy {
  return {
    port: 0,
    faults: [],
    mute: false,
    writes: 0,
    async close() {
      cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function listening(server: Server, proxy: FaultyProxy): Promise<FaultyProxy> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  proxy.port = (server.address() as AddressInfo).port;
  return proxy;
}
