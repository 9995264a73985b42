import { ipLists } from '@contract/resources/ip-lists.ts';
import type { SearchProvider } from '@/app/feature.ts';
import { call } from '@/shared/api/call.ts';

const SHOWN = 6;

// All lists fit two pages: there are at most 128.
export const searchIpLists: SearchProvider = async (text, signal) => {
  const pages = await Promise.all([1, 2].map((page) => call(ipLists.list, { page, pageSize: 100 }, { signal })));
  const typed = text.trim().toLowerCase();
  return pages
    .flatMap(({ items }) => items)
    .filter(({ name }) => name.toLowerCase().includes(typed))
    .slice(0, SHOWN)
    .map(({ id, name }) => ({ key: `ip-list:${id}`, title: name, to: `/ip-lists/${id}` }));
};
