// Cloudflare's API v4 as far as zones and records go, written from its documentation: batches are made whole or not at all.
import { type MemoryRecord, type MemoryZones, Refused } from './memory-zones.ts';
import { type ProviderResponse, startProviderServer } from './provider-server.ts';

const BASE = '/client/v4';
/** Pages are no longer than this, whatever is asked for. */
export const PAGE = 100;
const TOKEN = 'a-token-of-the-test';
const CODES: Record<Refused['reason'], [number, string]> = {
  invalid: [9005, 'Content is invalid'],
  conflict: [81053, 'An A, AAAA, or CNAME record with that host already exists.'],
  duplicate: [81058, 'An identical record already exists.'],
  missing: [81044, 'Record does not exist.'],
  ttl: [9021, 'TTL must be between 60 and 86400 seconds, or 1 for Automatic.'],
};

interface Sent {
  id: string;
  name: string;
  type: string;
  content: string;
  ttl: number;
}

export const startCloudflare = () =>
  startProviderServer({
    base: BASE,
    credentials: { api_token: TOKEN },
    wrong: { api_token: 'another' },
    isWrite: ({ method }) => method !== 'GET',
    answer({ method, path, headers, body }, zones) {
      if (headers.authorization !== `Bearer ${TOKEN}`) return failed(403, 10000, 'Authentication error');
      const url = new URL(path, 'http://localhost');
      const asked = url.pathname.slice(BASE.length);
      const idOf = (zone: string) => `id-${zone}`;
      if (asked === '/zones') {
        const names = [...zones.zones.keys()].filter((zone) => [null, zone].includes(url.searchParams.get('name')));
        return page(
          url,
          names.map((name) => ({ id: idOf(name), name, status: 'active' })),
        );
      }
      const [, id, action] = /^[/]zones[/]([^/]+)[/]dns_records(?:[/](batch))?$/.exec(asked) ?? [];
      const zone = [...zones.zones.keys()].find((name) => idOf(name) === id);
      if (zone === undefined) return failed(404, 7003, 'Could not route to the zone');
      if (method === 'GET') {
        const name = url.searchParams.get('name');
        const found = zones.records(zone).filter((record) => name === null || record.name === name);
        return page(
          url,
          found.map(({ value, line: _line, ...record }) => ({
            ...record,
            content: record.type === 'TXT' ? `"${value}"` : value,
            proxied: false,
          })),
        );
      }
      if (method === 'POST' && action === 'batch') return batch(zones, zone, JSON.parse(body));
      return failed(405, 1, 'no such call');
    },
  });

function batch(
  zones: MemoryZones,
  zone: string,
  given: Record<'deletes' | 'patches' | 'posts', Sent[]>,
): ProviderResponse {
  const before = new Map(zones.zones.get(zone));
  try {
    for (const { id } of given.deletes) zones.delete(zone, id);
    for (const { id, ...change } of given.patches) zones.update(zone, id, recordOf(change));
    for (const record of given.posts) zones.create(zone, recordOf(record));
    return { status: 200, body: { success: true, errors: [], result: {} } };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    zones.zones.set(zone, before);
    return failed(400, ...CODES[error.reason]);
  }
}

function recordOf({ name, type, content, ttl }: Omit<Sent, 'id'>): Omit<MemoryRecord, 'id'> {
  if (ttl !== 1 && (ttl < 60 || ttl > 86_400)) throw new Refused('ttl');
  return { name, type, line: '', ttl, value: content.replace(/^"(.*)"$/, '$1') };
}

function page(url: URL, all: readonly unknown[]): ProviderResponse {
  const size = Math.min(Number(url.searchParams.get('per_page') ?? 20), PAGE);
  const from = (Number(url.searchParams.get('page') ?? 1) - 1) * size;
  const result = all.slice(from, from + size);
  const result_info = { count: result.length, total_count: all.length, total_pages: Math.ceil(all.length / size) };
  return { status: 200, body: { success: true, errors: [], result, result_info } };
}

function failed(status: number, code: number, message: string): ProviderResponse {
  return { status, body: { success: false, errors: [{ code, message }], result: null } };
}
