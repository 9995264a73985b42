// The proxies that are compared, each in front of the same origins with the same times: three tries, other origins after a
// failure, a check each interval.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { BalancePolicy } from '../../proto/gen/svc/config/v1/site_pb.js';
import { edgeCommand } from '../lib/edge.ts';
import { siteHost, writeEdgeState } from '../lib/edge-state.ts';
import { startPlainCaddy } from '../lib/plain-caddy.ts';
import { answers, freePort, nginxCommand, type Server, startServer } from '../lib/servers.ts';

export const INTERVAL_S = 5;
export const READ_TIMEOUT_MS = 2000;
const CONNECT_TIMEOUT_MS = 1000;
const TRIES = 3;
const FAILS = 3;
const CPUS = '0';
export const HOST = siteHost(0);

/** Starts a proxy in front of origins on loopback. */
export type StartProxy = (folder: string, ports: readonly number[]) => Promise<Server>;

export const PROXIES: Readonly<Record<string, StartProxy>> = { edge, haproxy, nginx, caddy };

async function edge(folder: string, [first = 0, ...more]: readonly number[]): Promise<Server> {
  const port = await freePort();
  const address = '127.0.0.1';
  writeEdgeState({
    folder,
    sites: 1,
    origin: { address, port: first },
    moreOrigins: more.map((each) => ({ address, port: each })),
    pool: {
      policy: BalancePolicy.ROUND_ROBIN,
      maxFails: FAILS,
      recoverySeconds: INTERVAL_S,
      tries: TRIES,
      connectTimeoutMs: CONNECT_TIMEOUT_MS,
      readTimeoutMs: READ_TIMEOUT_MS,
      activeHealthCheck: {
        $typeName: 'svc.config.v1.ActiveHealthCheck',
        path: '/',
        head: false,
        expectedStatusMin: 200,
        expectedStatusMax: 399,
        host: '',
        intervalSeconds: INTERVAL_S,
        timeoutSeconds: READ_TIMEOUT_MS / 1000,
        healthyThreshold: 1,
        unhealthyThreshold: FAILS,
      },
    },
  });
  return startServer('edge', CPUS, edgeCommand(folder, port), port, () => answers(port, HOST));
}

async function haproxy(folder: string, ports: readonly number[]): Promise<Server> {
  const port = await freePort();
  mkdirSync(folder, { recursive: true });
  const file = path.join(folder, 'haproxy.cfg');
  const servers = ports.map(
    (each, index) =>
      `  server o${index} 127.0.0.1:${each} check inter ${INTERVAL_S}s rise 1 fall ${FAILS} observe layer7 error-limit ${FAILS} on-error mark-down`,
  );
  writeFileSync(
    file,
    `global
  nbthread 1
  maxconn 4096
defaults
  mode http
  timeout connect ${CONNECT_TIMEOUT_MS}ms
  timeout client 60s
  timeout server ${READ_TIMEOUT_MS}ms
  timeout check ${READ_TIMEOUT_MS}ms
  retries ${TRIES - 1}
  option redispatch 1
  retry-on all-retryable-errors
  option httpchk GET /
frontend visitors
  bind 127.0.0.1:${port}
  default_backend origins
backend origins
  balance roundrobin
${servers.join('\n')}
`,
  );
  return startServer('haproxy', CPUS, ['haproxy', '-db', '-f', file], port, () => answers(port, HOST));
}

async function nginx(folder: string, ports: readonly number[]): Promise<Server> {
  const port = await freePort();
  const servers = ports.map((each) => `server 127.0.0.1:${each} max_fails=${FAILS} fail_timeout=${INTERVAL_S}s;`);
  const http = `  upstream origins { ${servers.join(' ')} keepalive 64; }
  server { listen 127.0.0.1:${port} backlog=4096; location / {
    proxy_pass http://origins; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host;
    proxy_connect_timeout ${CONNECT_TIMEOUT_MS}ms; proxy_read_timeout ${READ_TIMEOUT_MS}ms;
    proxy_next_upstream error timeout invalid_header http_502 http_503 http_504; proxy_next_upstream_tries ${TRIES}; } }`;
  return startServer('nginx', CPUS, nginxCommand(folder, http), port, () => answers(port, HOST));
}

function caddy(folder: string, ports: readonly number[]): Promise<Server> {
  mkdirSync(folder, { recursive: true });
  const proxy = {
    handler: 'reverse_proxy',
    upstreams: ports.map((port) => ({ dial: `127.0.0.1:${port}` })),
    transport: {
      protocol: 'http',
      dial_timeout: `${CONNECT_TIMEOUT_MS}ms`,
      response_header_timeout: `${READ_TIMEOUT_MS}ms`,
    },
    load_balancing: {
      selection_policy: { policy: 'round_robin' },
      retries: TRIES - 1,
      retry_match: [{ method: ['GET'] }],
    },
    health_checks: {
      active: { uri: '/', interval: `${INTERVAL_S}s`, timeout: `${READ_TIMEOUT_MS}ms`, passes: 1, fails: FAILS },
      passive: { fail_duration: `${INTERVAL_S}s`, max_fails: FAILS, unhealthy_status: [503] },
    },
  };
  return startPlainCaddy(folder, CPUS, proxy, (port) => answers(port, HOST));
}
