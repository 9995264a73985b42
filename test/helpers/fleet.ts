// Simulated nodes for tests, enrolled as real ones are.
import { createCertificateRequest } from '../../agents/kit/certificate-request.ts';
import { Connection, type Identity } from '../../bench/fleet/connection.ts';
import { enrollNodes } from '../../bench/fleet/enroll-nodes.ts';
import { type Fleet, type FleetOptions, startFleet } from '../../bench/fleet/fleet.ts';
import type { TestConsole } from './console.ts';
import { eventually } from './eventually.ts';

/** A console of this process or another. */
type Reachable = Pick<TestConsole, 'client' | 'nodeApiUrl'>;

/** A token as the operator creates it. */
export function newToken(
  console: Reachable,
  input: Record<string, unknown>,
): Promise<{ tokenId: string; token: string; caSha256: string }> {
  return console.client.rpc('enrollmentTokens.create', input);
}

/** Enrolls one node; nothing of it connects yet. */
export async function enrollOne(
  console: Reachable,
  clusterId: string,
  features: readonly string[] = ['bans-v1'],
): Promise<Identity> {
  const [identity] = await enrollNodes(1, console.nodeApiUrl, () => newToken(console, { clusterId }), features);
  return identity!;
}

/** Connection of an enrolled node, or with another certificate. */
export function connectAs(
  console: Reachable,
  identity: Identity,
  credentials: { keyPem: string; certificatePem: string } = identity,
): Connection {
  return new Connection(console.nodeApiUrl, identity.authorityPem, credentials);
}

/**
 * Starts nodes and waits until the console counts them as online: one whose first heartbeat is not noted yet would be
 * offline for the change that comes next.
 */
export async function startTestFleet(
  console: Reachable,
  clusterId: string,
  nodes: number,
  options: Partial<FleetOptions> = {},
): Promise<Fleet> {
  // Who brings tokens of his own may have no operator yet, and who does not wait is told at once.
  const waits = options.newToken === undefined && options.waitConnected !== false;
  const fleet = await startFleet({
    nodes,
    serverUrl: console.nodeApiUrl,
    newToken: () => newToken(console, { clusterId }),
    full: true,
    reconnectMs: 1_000,
    ...options,
  });
  if (waits)
    await eventually(
      async () => {
        const online = await onlineNodes(console, clusterId);
        return fleet.nodes.every(({ nodeId }) => online.has(nodeId));
      },
      { what: `${nodes} nodes online` },
    );
  return fleet;
}

/** Ids of the nodes of a cluster that the console counts as connected: those of fleets that were stopped just now, too. */
async function onlineNodes({ client }: Reachable, clusterId: string): Promise<Set<string>> {
  const ids = new Set<string>();
  for (let page = 1; ; page++) {
    const asked = { clusterId, online: true, pageSize: 100, page };
    const { items, total } = await client.rpc<{ items: { id: string }[]; total: number }>('nodes.list', asked);
    for (const { id } of items) ids.add(id);
    if (items.length === 0 || page * 100 >= total) return ids;
  }
}

export { createCertificateRequest };
