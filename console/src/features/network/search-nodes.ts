import { nodes } from '@contract/resources/nodes.ts';
import type { SearchProvider } from '@/app/feature.ts';
import { call } from '@/shared/api/call.ts';

export const searchNodes: SearchProvider = async (search, signal) => {
  const { items } = await call(nodes.list, { search, pageSize: 6 }, { signal });
  return items.map(({ id, name, hostname, clusterName }) => ({
    key: `node:${id}`,
    title: name,
    detail: hostname === name ? clusterName : `${clusterName} · ${hostname}`,
    to: `/nodes/${id}`,
  }));
};
