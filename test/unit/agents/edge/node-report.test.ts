// What a node says of itself.
import { create } from '@bufbuild/protobuf';
import test from 'ava';
import { buildHeartbeat, type NodeView } from '../../../../agents/edge/run/node-report.ts';
import { type GetStatusResponse, GetStatusResponseSchema } from '../../../../proto/gen/svc/edge/v1/edge_pb.js';

/** A node of which nothing is known but its peers. */
function nodeWith(proxyPeers: readonly string[], status?: GetStatusResponse): NodeView {
  const well = { message: '', problem: '' };
  return {
    proxyPeers,
    capabilities: { names: () => new Set() },
    banCapacity: 100,
    config: well,
    bans: well,
    configFeed: well,
    banFeed: well,
    dataPlane: { ...well, status, healthy: true },
    skippedEvents: well,
    protection: { ...well, keysVersion: 0n },
    ticketKeys: { ...well, version: 0n },
    acme: { ...well, applied: undefined },
    certificates: well,
    kernel: undefined,
    metrics: { read: () => undefined },
    certificateNotAfter: 0,
    failed: [],
  } as unknown as NodeView;
}

test('a node says whether anybody may send it a PROXY header', (t) => {
  t.true(buildHeartbeat(nodeWith([])).info?.proxyPeersUnset);
  t.false(buildHeartbeat(nodeWith(['10.0.0.0/8'])).info?.proxyPeersUnset);
});

test('a node tells of its databases once its data plane did', (t) => {
  t.is(buildHeartbeat(nodeWith([])).info?.geoip, undefined);
  const geoip = { country: { ready: true, builtAt: 1n }, asn: { problem: 'no database is given' } };
  const told = buildHeartbeat(nodeWith([], create(GetStatusResponseSchema, { geoip }))).info?.geoip;
  t.like(told, { country: { ready: true, builtAt: 1n }, asn: { ready: false, problem: 'no database is given' } });
});
