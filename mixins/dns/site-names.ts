// Names of sites: each leads to the name of all lines, and with aliases also to each line.
import type { DnsSettings } from '../../models/dns/binding.ts';

export interface SiteName {
  name: string;
  siteId: string;
  target: string;
}

/** What a site's domains point to. */
export function siteTarget({ domain }: Pick<DnsSettings, 'domain'>, siteId: string): string {
  return `${siteId}.${domain}`;
}

/** At most `limit`: all of a site or none. */
export function siteNames(
  { domain, allLabel, lines, lineAliases }: DnsSettings,
  sites: readonly { id: string }[],
  limit: number,
): SiteName[] {
  const aliases = lineAliases ? lines : [];
  const fitting = sites.slice(0, Math.max(0, Math.floor(limit / (1 + aliases.length))));
  return fitting.flatMap(({ id }) => [
    { name: siteTarget({ domain }, id), siteId: id, target: `${allLabel}.${domain}` },
    ...aliases.map(({ name }) => ({
      name: `${name}.${siteTarget({ domain }, id)}`,
      siteId: id,
      target: `${name}.${domain}`,
    })),
  ]);
}
