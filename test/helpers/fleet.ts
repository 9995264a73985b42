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
  const counts = options.newToken === undefined && options.waitConnected !== false;
  const before = counts ? await onlineNodes(console) : 0;
  const fleet = await startFleet({
    nodes,
    serverUrl: console.nodeApiUrl,
    newToken: () => newToken(console, { clusterId }),
    full: true,
    reconnectMs: 1_000,
    ...options,
  });
  if (counts)
    await eventually(async () => (await onlineNodes(console)) >= before + nodes, {
      what: `${nodes} more nodes online`,
    });
  return fleet;
}

async function onlineNodes({ client }: Reachable): Promise<number> {
  return (await client.rpc<{ total: number }>('nodes.list', { online: true, pageSize: 1 })).total;
}

export { createCertificateRequest };
