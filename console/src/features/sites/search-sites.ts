// Sites by name and domain. Words that name a part of a site lead there: "waf" to the WAF of sites, "waf shop" to that of shop.
import { sites } from '@contract/resources/sites.ts';
import type { SearchProvider } from '@/app/feature.ts';
import { call } from '@/shared/api/call.ts';
import { tx } from '@/shared/i18n/i18n.ts';
import { LOCALES } from '@/shared/i18n/locale.ts';
import { partPath, partsOf } from '@/shared/page/parts.ts';
import { splitPart } from './search-part.ts';

const SHOWN = 6;

export const searchSites: SearchProvider = async (text, signal) => {
  const titled = partsOf('site').map((part) => ({ part, titles: LOCALES.map((language) => part.title[language]) }));
  const split = splitPart(text, titled);
  const [named, ofPart] = await Promise.all([
    call(sites.list, { search: text, pageSize: SHOWN }, { signal }),
    split && call(sites.list, { ...(split.rest ? { search: split.rest } : {}), pageSize: SHOWN }, { signal }),
  ]);
  const parts = (ofPart?.items ?? []).map(({ id, name }) => ({
    key: `site:${id}:${split!.part.name}`,
    title: name,
    detail: tx(split!.part.title),
    to: partPath(`/sites/${id}`, split!.part),
  }));
  const found = named.items.map(({ id, name, domains }) => ({
    key: `site:${id}`,
    title: name,
    detail: domains[0] ?? '',
    to: `/sites/${id}`,
  }));
  return [...found, ...parts];
};
