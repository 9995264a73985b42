import type { MessageInitShape } from '@bufbuild/protobuf';
import { prefetchOfNode } from '../../../models/cache/prefetch-node.ts';
import { sitesOfHosts } from '../../../models/cache/purge-sites.ts';
import { taskUrl } from '../../../models/cache/task-url.ts';
import type { GetPrefetchRequest, GetPrefetchResponseSchema } from '../../../proto/gen/svc/node/v1/tasks_pb.js';
import type { CallContext } from '../calls.ts';
import type { NodeIdentity } from '../identity.ts';

/** What a node is to fetch: URLs of sites that its cluster serves. */
export function getPrefetch(
  { runtime, pulls }: CallContext,
  { nodeId, clusterId }: NodeIdentity,
  { cacheTaskId }: GetPrefetchRequest,
): Promise<MessageInitShape<typeof GetPrefetchResponseSchema>> {
  const sql = runtime.pools.api;
  return pulls.take(nodeId, async () => {
    const task = await prefetchOfNode(sql, nodeId, cacheTaskId);
    if (!task) return {};
    const urls = task.targets.flatMap((text) => taskUrl(text) ?? []);
    const sites = await sitesOfHosts(
      sql,
      urls.map(({ host }) => host),
    );
    const isServed = (host: string) =>
      sites.get(host)?.some((site) => site.clusterId === clusterId && site.enabled) ?? false;
    return {
      prefetch: {
        urls: urls.filter(({ host }) => isServed(host)).map(({ text }) => text),
        sitemap: task.type === 'sitemap',
        maxUrls: task.maxUrls ?? 0,
        desktop: task.variants.includes('desktop'),
        mobile: task.variants.includes('mobile'),
      },
    };
  });
}
