// A whole installation in processes that can be killed one by one: PostgreSQL, Redis, the console's three roles, a real
// edge node and an origin. What is killed is started again, as an init system would.
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { freePort } from '../../bench/lib/servers.ts';
import type { ConsoleClient } from '../../bin/lib/console-client.ts';
import type { Child } from '../../bin/lib/processes.ts';
import { startTestConsoleProcess, type TestConsoleProcess } from './console.ts';
import { type EdgeNode, startEdgeNode } from './edge-node.ts';
import { createTestDatabase, privateServers, redisPrefix } from './servers.ts';

export interface Installation {
  client: ConsoleClient;
  clusterId: string;
  databaseUrl: string;
  redisUrl: string;
  consoles: { app: TestConsoleProcess; channel: TestConsoleProcess; worker: TestConsoleProcess };
  node: EdgeNode;
  /** `httpsPort` is the node's usual port of TLS, 443 for the configuration. */
  edge: { host: string; port: number; httpsPort: number };
  origin: { address: string; port: number };
  servers: { postgres: Child; redis: Child };
  /** Starts the consoles' processes again after all were stopped. */
  startConsoles(): Promise<void>;
  /** What the console's processes logged as errors, for a failed test. */
  errors(): string[];
  stop(): Promise<void>;
}

/** Header in which a request to the edge names its client address. */
export const CLIENT_IP_HEADER = 'x-test-client-ip';

/**
 * Everything running, the node online, loopback allowed as origin and trusted to name client addresses. `nodeOptions` are
 * further ones of the node.
 */
export async function startInstallation(nodeOptions: readonly string[] = []): Promise<Installation> {
  const undo: (() => Promise<void> | void)[] = [];
  const stop = async () => {
    for (const each of undo.reverse()) await each();
  };
  try {
    return await assemble(undo, stop, nodeOptions);
  } catch (error) {
    await stop();
    throw error;
  }
}

async function assemble(
  undo: (() => Promise<void> | void)[],
  stop: () => Promise<void>,
  nodeOptions: readonly string[],
): Promise<Installation> {
  const own = await privateServers();
  undo.push(() => own.stop());
  own.postgres.keepRunning();
  own.redis.keepRunning();
  const database = await createTestDatabase(own);
  const [webPort, nodePort] = [await freePort(), await freePort()];
  const [edgePort, httpsPort] = [await freePort(), await freePort()];
  const shared = {
    servers: own,
    database,
    masterKey: randomBytes(32).toString('base64'),
    redisPrefix: redisPrefix(),
  };
  const start = async (role: string, env: NodeJS.ProcessEnv = {}) => {
    const started = await startTestConsoleProcess({
      ...shared,
      env: { ROLE: role, NODE_API_PORT: String(nodePort), SVC_NODE_API_URL: `https://localhost:${nodePort}`, ...env },
    });
    undo.push(() => started.stop());
    started.child.keepRunning();
    return started;
  };
  const startAll = async () => ({
    worker: await start('worker'),
    channel: await start('channel'),
    app: await start('app', { PORT: String(webPort) }),
  });
  const consoles = await startAll();
  const { client } = consoles.app;
  const clusters = await client.api<{ items: { id: string }[] }>('GET', '/clusters');
  const clusterId = clusters.items[0]!.id;
  const loopback = ['127.0.0.0/8'];
  await client.api('PUT', '/settings/origin-allow-list', { cidrs: loopback });
  await client.api('PUT', `/clusters/${clusterId}/client-ip`, {
    settings: { mode: 'header', trustedCidrs: loopback, header: CLIENT_IP_HEADER },
  });
  const origin = createServer((_request, response) => response.end('origin'));
  await new Promise<void>((resolve) => origin.listen(0, '127.0.0.1', resolve));
  undo.push(() => {
    origin.closeAllConnections();
    origin.close();
  });
  const listen = `127.0.0.1:${edgePort}`;
  const httpsListen = `127.0.0.1:${httpsPort}`;
  const node = await startEdgeNode({ client, clusterId, listen, httpsListen, kernelBans: 'off', more: nodeOptions });
  undo.push(() => node.stop());
  return {
    client,
    clusterId,
    databaseUrl: database.url,
    redisUrl: own.redisUrl,
    consoles,
    startConsoles: async () => {
      Object.assign(consoles, await startAll());
    },
    node,
    edge: { host: '127.0.0.1', port: edgePort, httpsPort },
    origin: { address: '127.0.0.1', port: (origin.address() as AddressInfo).port },
    servers: { postgres: own.postgres, redis: own.redis },
    errors: () =>
      Object.values(consoles)
        .flatMap((each) => each.log().split('\n'))
        .filter((line) => /"level":(?:"error"|"fatal"|50|60)/.test(line))
        .slice(-20),
    stop,
  };
}
