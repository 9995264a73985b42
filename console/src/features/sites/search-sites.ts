import { sites } from '@contract/resources/sites.ts';
import type { SearchProvider } from '@/app/feature.ts';
import { call } from '@/shared/api/call.ts';

export const searchSites: SearchProvider = async (search, signal) => {
  const { items } = await call(sites.list, { search, pageSize: 6 }, { signal });
  return items.map(({ id, name, domains }) => ({
    key: `site:${id}`,
    title: name,
    detail: domains[0] ?? '',
    to: `/sites/${id}`,
  }));
};
