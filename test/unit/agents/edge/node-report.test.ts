// What a node says of itself.
import test from 'ava';
import { buildHeartbeat, type NodeView } from '../../../../agents/edge/run/node-report.ts';

/** A node of which nothing is known but its peers. */
function nodeWith(proxyPeers: readonly string[]): NodeView {
  const well = { message: '', problem: '' };
  return {
    proxyPeers,
    capabilities: { names: () => new Set() },
    banCapacity: 100,
    config: well,
    bans: well,
    configFeed: well,
    banFeed: well,
    dataPlane: { ...well, status: undefined, healthy: true },
    skippedEvents: well,
    protection: { ...well, keysVersion: 0n },
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
