// A server that receives messages about alerts, and answers as it is told.
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Received {
  path: string;
  /** What it was answered with. */
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: bodies are judged by the assertions
  body: any;
}

export interface Hooks {
  url: string;
  /** In the order of their arrival. */
  received: Received[];
  /** What it answers. */
  status: number;
  answer: string;
  /** Called before the answer. */
  before: () => Promise<unknown> | undefined;
  stop(): Promise<void>;
}

export async function startHooks(): Promise<Hooks> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString();
    const path = request.url ?? '';
    const received = { path, status: hooks.status, headers: request.headers, text, body: JSON.parse(text) };
    hooks.received.push(received);
    await hooks.before();
    received.status = hooks.status;
    response.writeHead(received.status).end(hooks.answer);
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as AddressInfo;
  const hooks: Hooks = {
    url: `http://127.0.0.1:${port}`,
    received: [],
    status: 200,
    answer: '{}',
    before: () => undefined,
    stop: () =>
      new Promise((stopped) => {
        server.close(() => stopped());
        server.closeAllConnections();
      }),
  };
  return hooks;
}
