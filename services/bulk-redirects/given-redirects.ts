// Turns the redirects that a client sent into what is stored: canonical, complete, each source once.
import { badField, fail } from '../../contract/errors.ts';
import { fitsBytes, utf8 } from '../../contract/expression/bytes.ts';
import { isUsable } from '../../contract/expression/results.ts';
import type { Input } from '../../contract/procedure.ts';
import { type bulkRedirects, MAX_TARGET_BYTES } from '../../contract/resources/bulk-redirects.ts';
import { type Domain, formatDomain } from '../../contract/scalars/domain.ts';
import { normaliseHostName } from '../../contract/scalars/host-name.ts';
import {
  formatRedirectSource,
  parseRedirectSource,
  redirectKey,
  upperCaseHost,
} from '../../contract/scalars/redirect-source.ts';
import type { BulkRedirectRow } from '../../models/sites/bulk-redirect.ts';

type Given = Input<typeof bulkRedirects.set>['redirects'];

const SURROGATE = /[\ud800-\udfff]/;
/** Hosts named in a refusal. */
const SHOWN_HOSTS = 5;

export interface GivenRedirects {
  /** By source, as the database sorts them. */
  rows: BulkRedirectRow[];
  /** Hosts in sources, each once, in the order of the rows. */
  hosts: string[];
  /** Keys of sources given with a literal `#`. */
  fragments: string[];
}

/** Throws BAD_REQUEST, naming the row, and for a source that is there twice the first row with it. */
export function givenRedirects(given: Given): GivenRedirects {
  const rowOf = new Map<string, number>();
  const hosts = new Set<string>();
  const fragments: string[] = [];
  const rows = given.map(({ source: text, target, statusCode = 301, preserveQuery = false }, row) => {
    const at = `/redirects/${row}`;
    const upperCase = upperCaseHost(text);
    if (upperCase !== null) {
      const use = upperCase.toLowerCase();
      const message = `The host ${upperCase} must be in lower case. Use ${use}.`;
      badField(`${at}/source`, 'hostCase', { host: upperCase, use, message });
    }
    const source = parseRedirectSource(text) ?? badField(`${at}/source`, 'redirectSource');
    if (!fitsBytes(target, MAX_TARGET_BYTES)) badField(`${at}/target`, 'maxBytes', { limit: MAX_TARGET_BYTES });
    if (!isUsable('redirect', target)) badField(`${at}/target`, 'redirectTarget');
    const key = redirectKey(source);
    const first = rowOf.get(key);
    if (first !== undefined) {
      const params = { source: formatRedirectSource(source), first: `/redirects/${first}/source` };
      badField(`${at}/source`, 'sameSource', { ...params, row: first + 1 });
    }
    rowOf.set(key, row);
    if (source.host !== '') hosts.add(source.host);
    if (text.includes('#')) fragments.push(key);
    return { source: key, target, statusCode, preserveQuery };
  });
  return { rows: bySource(rows), hosts: [...hosts], fragments };
}

/** Throws BULK_REDIRECT_HOST_UNKNOWN for hosts that are no names of the site, nor have one label more than a wildcard. */
export function assertHostsKnown(hosts: readonly string[], domains: readonly Domain[]): void {
  const names = new Set(domains.filter(({ form }) => form === 'exact' || form === 'wildcard').map(formatDomain));
  const isKnown = (host: string) =>
    normaliseHostName(host) === host && (names.has(host) || names.has(host.replace(/^[^.]*/, '*')));
  const unknown = hosts.filter((host) => !isKnown(host));
  if (unknown.length > 0) fail('BULK_REDIRECT_HOST_UNKNOWN', { hosts: unknown.slice(0, SHOWN_HOSTS) });
}

/** In the order of the bytes, which is that of the code units but for characters with two of them. */
function bySource(rows: BulkRedirectRow[]): BulkRedirectRow[] {
  if (!rows.some(({ source }) => SURROGATE.test(source))) {
    return rows.sort((a, b) => (a.source < b.source ? -1 : 1));
  }
  return rows
    .map((row) => ({ row, bytes: utf8(row.source) }))
    .sort((a, b) => Buffer.compare(a.bytes, b.bytes))
    .map(({ row }) => row);
}
