// Loops among the bulk redirects of a site. Each redirect leads to at most one other on a host, so a walk that marks what it
// has seen finds every loop once.
import { canonicalPath } from '../../contract/scalars/canonical-path.ts';
import type { Domain } from '../../contract/scalars/domain.ts';
import { domainOf } from '../../contract/scalars/domain-of-host.ts';
import { normaliseHostName } from '../../contract/scalars/host-name.ts';
import { decodeRedirectPath, sourceOfKey } from '../../contract/scalars/redirect-source.ts';
import type { BulkRedirectRow } from '../../models/sites/bulk-redirect.ts';
import type { SitePorts } from '../../models/sites/site-ports.ts';

export interface RedirectedSite {
  readonly domains: readonly Domain[];
  readonly ports: SitePorts;
}

/** Stands for every host of the site that no source names. */
const UNNAMED = '';
/** Base of targets that are a path: such a redirect stays on its host. */
const SAME_HOST = 'same-host.invalid';
/** Pairs of host and redirect that one call follows. */
const MAX_STEPS = 100_000;

/** Loops as lists of keys, in the order in which the redirects lead to each other. */
export function redirectLoops(rows: readonly BulkRedirectRow[], site: RedirectedSite): string[][] {
  const byKey = new Map(rows.map((row) => [row.source, row]));
  const named = new Set(rows.flatMap(({ source }) => sourceOfKey(source).host || []));
  const targetOf = targets(site, named);
  const find = (host: string, path: string) =>
    (host === UNNAMED ? undefined : byKey.get(host + path)) ?? byKey.get(path);
  const hostsWithoutNames = hasOtherHosts(site.domains, named) ? [UNNAMED, ...named] : [...named];

  const walked = new Map<string, number>();
  const loops = new Map<string, string[]>();
  let walk = 0;
  const follow = (host: string, start: BulkRedirectRow): void => {
    const own = ++walk;
    const way: { state: string; key: string }[] = [];
    let [at, row]: [string, BulkRedirectRow | undefined] = [host, start];
    while (row !== undefined) {
      const state = `${at} ${row.source}`;
      const seen = walked.get(state);
      if (seen !== undefined) {
        if (seen === own) keep(way.slice(way.findIndex((step) => step.state === state)).map(({ key }) => key));
        return;
      }
      if (walked.size >= MAX_STEPS) return;
      walked.set(state, own);
      way.push({ state, key: row.source });
      const next = targetOf(row);
      if (next === null) return;
      at = next.host ?? at;
      row = find(at, next.path);
    }
  };
  // The same redirects can form a loop on several hosts.
  const keep = (loop: string[]) => loops.set(loop.toSorted().join(' '), loop);

  for (const row of rows) {
    const { host, path } = sourceOfKey(row.source);
    if (host !== '') follow(host, row);
    else for (const each of hostsWithoutNames) if (find(each, path) === row) follow(each, row);
  }
  return [...loops.values()];
}

/** Where a redirect leads within the site: a host (null: the same) and the decoded path. Null: out of the site. */
function targets({ domains, ports }: RedirectedSite, named: ReadonlySet<string>) {
  const hosts = new Map<string, string | null>();
  const hostOf = (text: string): string | null => {
    const name = normaliseHostName(text);
    if (name === null || domainOf(name, domains) === null) return null;
    return named.has(name) ? name : UNNAMED;
  };
  return ({ target }: BulkRedirectRow): { host: string | null; path: string } | null => {
    const url = URL.parse(target, `http://${SAME_HOST}`);
    const decoded = url && decodeRedirectPath(url.pathname);
    if (!url || decoded === null) return null;
    const path = canonicalPath(decoded);
    if (url.hostname === SAME_HOST) return { host: null, path };
    if (url.port !== '' && ![...ports.http, ...ports.https].includes(Number(url.port))) return null;
    const host = hosts.get(url.hostname) ?? hostOf(url.hostname);
    hosts.set(url.hostname, host);
    return host === null ? null : { host, path };
  };
}

/** Whether the site has a host that no source names. */
function hasOtherHosts(domains: readonly Domain[], named: ReadonlySet<string>): boolean {
  return domains.some(({ form, name }) => form !== 'exact' || !named.has(name));
}
