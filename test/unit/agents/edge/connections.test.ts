// What a node tells of client connections, and the options that limit them.
import { create } from '@bufbuild/protobuf';
import test from 'ava';
import { renderCaddyConfig } from '../../../../agents/edge/caddy/caddy-config.ts';
import { describeConnections, describePorts } from '../../../../agents/edge/caddy/data-plane-report.ts';
import { portsText } from '../../../../agents/edge/commands/status.ts';
import { SUPERVISE_OPTIONS } from '../../../../agents/edge/options.ts';
import { GetStatusResponseSchema } from '../../../../proto/gen/svc/edge/v1/edge_pb.js';

const CONFIG = {
  stateDir: '/state',
  socketPath: '/state/edge.sock',
  httpListen: [':80'],
  httpsListen: [':443'],
  banCapacity: 1,
  banMaxMib: 1,
  proxyPeers: [],
};

const wrapperOf = (options: Parameters<typeof renderCaddyConfig>[0]): unknown =>
  (renderCaddyConfig(options) as { apps: { http: { servers: { edge: { listener_wrappers: unknown[] } } } } }).apps.http
    .servers.edge.listener_wrappers[0];

test('limits on connections reach the data plane, and 0 leaves them to it', (t) => {
  t.like(
    wrapperOf({
      ...CONFIG,
      maxConnections: 9,
      maxConnectionsPerNetwork: 8,
      maxConnectionsPerAddress: 7,
      maxRequestMib: 6,
      maxRequestMibPerNetwork: 5,
    }),
    {
      max_connections: 9,
      max_per_network: 8,
      max_per_address: 7,
      max_request_mib: 6,
      max_request_mib_per_network: 5,
    },
  );
  t.like(wrapperOf(CONFIG), { max_connections: 0, max_per_network: 0, max_per_address: 0 });
  for (const name of ['max-connections', 'max-connections-per-network', 'max-connections-per-address'])
    t.is(SUPERVISE_OPTIONS.find((option) => option.name === name)?.default, 0, name);
});

test('the limit on connections to one origin reaches the data plane, and 0 leaves it to it', (t) => {
  const app = (most?: number): unknown =>
    (
      renderCaddyConfig({ ...CONFIG, ...(most ? { maxConnectionsPerOrigin: most } : {}) }) as {
        apps: { svc: object };
      }
    ).apps.svc;
  t.like(app(60), { max_origin_connections: 60 });
  t.false(Object.hasOwn(app() as object, 'max_origin_connections'));
});

test('the time for which last addresses of origins serve reaches the data plane', (t) => {
  const app = (seconds?: number): unknown =>
    (renderCaddyConfig({ ...CONFIG, ...(seconds ? { originStaleSeconds: seconds } : {}) }) as { apps: { svc: object } })
      .apps.svc;
  t.like(app(60), { origin_stale_seconds: 60 });
  t.false(Object.hasOwn(app() as object, 'origin_stale_seconds'));
  t.is(SUPERVISE_OPTIONS.find((option) => option.name === 'origin-stale-seconds')?.default, 3600);
});

test('the time of a request body reaches the data plane', (t) => {
  t.like(renderCaddyConfig({ ...CONFIG, maxBodyMinutes: 2 }), { apps: { svc: { max_body_seconds: 120 } } });
});

test('the status names connections and what their limits did', (t) => {
  t.is(describeConnections(undefined), null);
  t.is(describeConnections(create(GetStatusResponseSchema, {})), null);
  const status = create(GetStatusResponseSchema, {
    activeConnections: 5n,
    connections: {
      limit: 100n,
      waiting: 2n,
      accepted: 50n,
      refused: { address: 3n },
      evicted: { total: 1n },
      http2Errors: { conn_PROTOCOL_ERROR_headers_even: 4n },
      http3Errors: { conn_H3_EXCESSIVE_LOAD: 5n },
    },
  });
  t.deepEqual(describeConnections(status), {
    open: 5,
    waiting: 2,
    limit: 100,
    accepted: 50,
    refused: { address: 3 },
    evicted: { total: 1 },
    http2Errors: { conn_PROTOCOL_ERROR_headers_even: 4 },
    http3Errors: { conn_H3_EXCESSIVE_LOAD: 5 },
  });
});

test('the status names the ports that are open, and those that are not with the reason', (t) => {
  t.is(describePorts(undefined), null);
  const portProblems = [
    { port: 8443, reason: 'address already in use' },
    { port: 8444, udp: true, reason: 'permission denied' },
  ];
  const status = create(GetStatusResponseSchema, { ports: [80, 443, 8080], portProblems });
  t.is(
    portsText(describePorts(status)),
    '80, 443, 8080; 8443 is not open: address already in use; 8444/udp is not open: permission denied',
  );
  t.is(portsText(describePorts(create(GetStatusResponseSchema, {}))), 'none');
  // An agent of before told nothing of them.
  t.is(portsText(undefined), 'unknown');
});
