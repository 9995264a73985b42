// The way to logged requests of a site: those of one id, or of an address, around a time.
import type { RouteLocationRaw } from 'vue-router';
import { placeOf } from './places.ts';

/** Clients may take long, and clocks of nodes differ. */
const AROUND_MS = 15 * 60_000;

export function requestsLink(
  siteId: string,
  /** As the page of the logs has it in its address. */
  filter: Readonly<Partial<Record<'requestId' | 'ip' | 'cidr', string>>>,
  around?: string,
): RouteLocationRaw | null {
  const path = placeOf('site', siteId, 'logs');
  if (path === null) return null;
  if (around === undefined) return { path, query: { range: '24h', ...filter } };
  const time = Date.parse(around);
  const iso = (ms: number) => new Date(ms).toISOString();
  return { path, query: { from: iso(time - AROUND_MS), to: iso(time + AROUND_MS), ...filter } };
}
