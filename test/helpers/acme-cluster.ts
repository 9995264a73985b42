// A cluster whose node answers an authority of the test: what orders of certificates need of the world.
import { type AcmeDirectoryOptions, startAcmeDirectory, type TestAuthority } from './acme-directory.ts';
import { AcmeNode } from './acme-node.ts';
import type { TestConsole } from './console.ts';
import { eventually } from './eventually.ts';
import { enrollOne } from './fleet.ts';
import type { Api, Body } from './resources.ts';

const BEAT_MS = 5_000;
const FEATURES = ['http01-v1', 'https-v1', 'tls-pending-domains-v1'];

export interface AcmeCluster {
  authority: TestAuthority;
  clusterId: string;
  node: AcmeNode;
  stop(): Promise<void>;
}

/** Starts an authority that asks the cluster's node, has the console use it, and connects the node. */
export async function startAcmeCluster(
  console: TestConsole,
  api: Api,
  options: Partial<AcmeDirectoryOptions> = {},
): Promise<AcmeCluster> {
  const clusterId = await api.cluster(`issued-${Math.random().toString(36).slice(2, 8)}`);
  const node = new AcmeNode(await enrollOne(console, clusterId, FEATURES));
  const authority = await startAcmeDirectory({
    async look({ name, token, keyAuthorization }) {
      return node.answers.get(`${name} ${token}`) === keyAuthorization || 'unauthorized';
    },
    ...options,
  });
  node.connect(console);
  const beat = () => node.heartbeat(FEATURES).catch(() => undefined);
  await eventually(
    async () => {
      await beat();
      const { items } = await console.client.rpc<{ items: unknown[] }>('nodes.list', { clusterId, online: true });
      return items.length > 0;
    },
    { everyMs: 500, what: 'the node online' },
  );
  const beats = setInterval(beat, BEAT_MS);
  await useAuthority(api, authority);
  return {
    authority,
    clusterId,
    node,
    async stop() {
      clearInterval(beats);
      node.disconnect();
      await authority.close();
    },
  };
}

export function useAuthority(api: Api, { url, caPem }: TestAuthority, more: Body = {}): Promise<Body> {
  return api.ok('PUT', '/settings/acme-directory', { url, caPem, ...more });
}

export function requestOf(names: string[], more: Body = {}): Body {
  return { name: names[0], names, email: 'ops@example.org', ca: 'custom', skipDnsCheck: true, ...more };
}

/** The order of the certificate, when it is over. */
export function orderOver(api: Api, id: string): Promise<Body> {
  return eventually(
    async () => {
      const progress = await api.ok('GET', `/certificates/${id}/progress`);
      return ['done', 'failed'].includes(progress.state) && progress;
    },
    { everyMs: 200, what: 'the end of the order' },
  );
}
