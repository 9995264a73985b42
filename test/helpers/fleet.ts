// Simulated nodes for tests, enrolled as real ones are.
import { createCertificateRequest } from '../../agents/kit/certificate-request.ts';
import { Connection, type Identity } from '../../bench/fleet/connection.ts';
import { enrollNodes } from '../../bench/fleet/enroll-nodes.ts';
import { type Fleet, type FleetOptions, startFleet } from '../../bench/fleet/fleet.ts';
import type { TestConsole } from './console.ts';

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

export function startTestFleet(
  console: Reachable,
  clusterId: string,
  nodes: number,
  options: Partial<FleetOptions> = {},
): Promise<Fleet> {
  return startFleet({
    nodes,
    serverUrl: console.nodeApiUrl,
    newToken: () => newToken(console, { clusterId }),
    full: true,
    reconnectMs: 1_000,
    ...options,
  });
}

export { createCertificateRequest };
