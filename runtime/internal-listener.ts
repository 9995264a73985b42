// The internal HTTP listener of a process: /metrics for Prometheus, /livez and /readyz for whoever restarts and routes.
import { createServer, type ServerResponse } from 'node:http';
import { collectDefaultMetrics } from 'prom-client';
import type { Elsewhere } from './elsewhere.ts';
import type { Address } from './listener.ts';
import type { Runtime } from './runtime.ts';

const CHECK_MS = 2_000;

export interface InternalListener extends Address {
  close(): Promise<void>;
}

/**
 * Serves until closed. Ready: everything started, not stopping, and the database answers. A Redis that is away, and
 * services that no other process runs, are reported but do not make a process unready: it serves what it has.
 */
export async function openInternalListener(
  runtime: Runtime,
  hasStarted: () => boolean,
  elsewhere: Elsewhere,
): Promise<InternalListener> {
  const { env, metrics } = runtime;
  collectDefaultMetrics({ register: metrics });
  const server = createServer(async (request, response) => {
    try {
      if (request.url === '/metrics') {
        send(response, 200, metrics.contentType, await metrics.metrics());
      } else if (request.url === '/livez') {
        sendJson(response, 200, { status: 'ok', role: env.role });
      } else if (request.url === '/readyz') {
        const report = { ...(await readiness(runtime, hasStarted())), missing: elsewhere.missing() };
        sendJson(response, report.ready ? 200 : 503, report);
      } else {
        sendJson(response, 404, { error: 'not_found' });
      }
    } catch (err) {
      runtime.log.error({ err }, 'internal listener failed');
      if (!response.headersSent) sendJson(response, 500, { error: 'failed' });
    }
  });
  server.requestTimeout = 10_000;
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      const where = `${env.metricsHost}:${env.metricsPort}`;
      reject(new Error(`the internal port ${where} (METRICS_PORT) cannot be opened (${cause.code})`, { cause }));
    });
    server.listen(env.metricsPort, env.metricsHost, resolve);
  });
  const address = server.address() as { address: string; port: number };
  return {
    host: address.address,
    port: address.port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function readiness(runtime: Runtime, started: boolean) {
  const stopping = runtime.stopping.aborted;
  const database = started && !stopping ? await databaseAnswers(runtime) : false;
  return {
    ready: started && !stopping && database,
    role: runtime.env.role,
    started,
    stopping,
    database,
    redis: runtime.redis.status === 'ready',
  };
}

async function databaseAnswers(runtime: Runtime): Promise<boolean> {
  try {
    await runtime.pools.channel.query({ text: 'select 1', query_timeout: CHECK_MS } as { text: string });
    return true;
  } catch (err) {
    runtime.log.warn({ err }, 'readiness check of the database failed');
    return false;
  }
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  send(response, status, 'application/json', JSON.stringify(body));
}

function send(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) }).end(body);
}
