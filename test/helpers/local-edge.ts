// A real edge on this machine in front of origins on it, for tests of what visitors get and what the console says of it.
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ExecutionContext } from 'ava';
import { freePort } from '../../bench/lib/servers.ts';
import { startTestConsole, type TestConsole } from './console.ts';
import { type EdgeNode, startEdgeNode } from './edge-node.ts';
import { type EdgeAnswer, edgeGet, edgeSend } from './edge-request.ts';
import type { Api } from './resources.ts';

/** A console whose node channel real nodes reach. */
export async function startNodeConsole(): Promise<TestConsole> {
  const port = await freePort();
  return startTestConsole({
    env: { NODE_API_PORT: String(port), SVC_NODE_API_URL: `https://localhost:${port}` },
  });
}

export interface LocalOrigin {
  address: string;
  port: number;
  server: Server;
}

/** An origin that sites may have; it ends with the test. */
export async function startLocalOrigin(t: ExecutionContext, api: Api, respond: RequestListener): Promise<LocalOrigin> {
  await api.ok('PUT', '/settings/origin-allow-list', { cidrs: ['127.0.0.0/8'] });
  const server = createServer(respond);
  const address = '127.0.0.1';
  await new Promise<void>((resolve) => server.listen(0, address, resolve));
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  return { address, port: (server.address() as AddressInfo).port, server };
}

/** Asks the edge for a path of a host, `/` by default. */
export type AskEdge = (host: string, path?: string) => Promise<EdgeAnswer>;

/** Sends the edge a request that is no plain GET. */
export type SendEdge = (host: string, request: Parameters<typeof edgeSend>[2]) => Promise<EdgeAnswer>;

/** A node of a cluster that is online; it ends with the test, and a failed test shows the end of its log. */
export async function startLocalEdge(
  t: ExecutionContext,
  { client }: TestConsole,
  clusterId: string,
): Promise<{ ask: AskEdge; send: SendEdge; edge: EdgeNode }> {
  const port = await freePort();
  const edge = await startEdgeNode({ client, clusterId, listen: `127.0.0.1:${port}`, kernelBans: 'off' });
  t.teardown(async () => {
    if (!t.passed) for (const line of edge.log().split('\n').slice(-40)) t.log(line);
    await edge.stop();
  });
  const to = { host: '127.0.0.1', port };
  return {
    edge,
    ask: (host, path) => edgeGet(to, host, {}, path),
    send: (host, request) => edgeSend(to, host, request),
  };
}
