// The ways from a logged request to rules: one that is made of it, and a trial of it.
import type { RouteLocationRaw } from 'vue-router';
import { placeOf } from '@/shared/page/places.ts';
import type { LogRow } from './use-log-rows.ts';

const known = (values: Readonly<Record<string, string | null>>): Record<string, string> =>
  Object.fromEntries(Object.entries(values).flatMap(([name, value]) => (value === null ? [] : [[name, value]])));

/** Rules of the site, with the dialog of a new one about requests like this. */
export function ruleLink(siteId: string, { method, host, path }: LogRow): RouteLocationRaw {
  return { path: placeOf('site', siteId, 'rules') ?? '', query: { like: '1', method, host, path } };
}

/** Rules of the site, with the trial of this request. */
export function tryLink(siteId: string, row: LogRow): RouteLocationRaw {
  const query = row.query === null || row.query === '' ? '' : `?${row.query}`;
  const asked = known({
    method: row.method,
    url: `${row.scheme}://${row.host}${row.path}${query}`,
    address: row.clientIp,
    ua: row.userAgent,
    referer: row.referer,
    country: row.country,
    asn: row.asn === null ? null : String(row.asn),
    ja4: row.ja4,
  });
  return { path: placeOf('site', siteId, 'rules') ?? '', query: { try: '1', ...asked } };
}
