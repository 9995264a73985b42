// Huawei Cloud DNS as far as zones and sets of records go, written from its documentation.
import { createHash, createHmac } from 'node:crypto';
import type { SeenRequest } from './faulty-proxy.ts';
import { type MemoryRecord, type MemoryZones, Refused } from './memory-zones.ts';
import { type ProviderResponse, startProviderServer } from './provider-server.ts';

/** Sets of a page are no more than this, whatever is asked for. */
export const PAGE = 100;
const [ID, SECRET] = ['an-id', 'a-secret-of-the-test'];
const LINES: Record<string, string> = {
  default: 'default_view',
  telecom: 'Dianxin',
  unicom: 'Liantong',
  mobile: 'Yidong',
  edu: 'Jiaoyuwang',
  overseas: 'Abroad',
};
const CODES: Record<Refused['reason'], string> = {
  invalid: 'DNS.0307',
  conflict: 'DNS.0335',
  duplicate: 'DNS.0312',
  missing: 'DNS.0313',
  ttl: 'DNS.0309',
};

interface Sent {
  name: string;
  type: string;
  ttl: number;
  records: string[];
  line?: string;
}

export const startHuawei = () =>
  startProviderServer({
    credentials: { access_key_id: ID, secret_access_key: SECRET },
    wrong: { access_key_id: ID, secret_access_key: 'another' },
    isWrite: ({ method }) => method !== 'GET',
    limited: { status: 429, headers: {}, body: JSON.stringify({ error_code: 'APIGW.0308', error_msg: 'throttled' }) },
    lineOf: (line) => LINES[line] ?? line.replace(/^other:/, ''),
    answer(request, zones) {
      if (!isSigned(request))
        return { status: 401, body: { error_code: 'APIGW.0301', error_msg: 'Incorrect IAM auth' } };
      try {
        return answer(request, zones);
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        const status = error.reason === 'missing' ? 404 : error.reason === 'conflict' ? 409 : 400;
        const message = error.reason === 'duplicate' ? 'The record set already exists.' : 'as documented';
        return { status, body: { code: CODES[error.reason], message } };
      }
    },
  });

function answer({ method, path, body }: SeenRequest, zones: MemoryZones): ProviderResponse {
  const url = new URL(path, 'http://localhost');
  const idOf = (zone: string) => `id${[...zones.zones.keys()].indexOf(zone)}`;
  const asked = url.searchParams.get('name');
  const from = Number(url.searchParams.get('offset') ?? 0);
  const part = <T>(all: readonly T[]) => all.slice(from, from + Math.min(Number(url.searchParams.get('limit')), PAGE));
  if (url.pathname === '/v2/zones') {
    const all = [...zones.zones.keys()].filter((zone) => asked === null || asked === `${zone}.`);
    const shown = part(all).map((zone) => ({ id: idOf(zone), name: `${zone}.`, zone_type: 'public' }));
    return { status: 200, body: { zones: shown, metadata: { total_count: all.length } } };
  }
  const [, id, set] = /^[/]v2[.]1[/]zones[/]([^/]+)[/]recordsets(?:[/](.+))?$/.exec(url.pathname) ?? [];
  const zone = [...zones.zones.keys()].find((name) => idOf(name) === id);
  if (zone === undefined) return { status: 404, body: { code: 'DNS.0302', message: 'The zone does not exist.' } };
  if (method === 'GET') {
    const all = setsOf(zones, zone).filter(({ name }) => asked === null || name === asked);
    return { status: 200, body: { recordsets: part(all), metadata: { total_count: all.length } } };
  }
  const there = set === undefined ? undefined : setsOf(zones, zone).find((one) => one.id === set);
  if (set !== undefined && !there) throw new Refused('missing');
  const before = new Map(zones.zones.get(zone));
  try {
    for (const record of there?.members ?? []) zones.delete(zone, record.id);
    if (method === 'DELETE') return { status: 204, body: null };
    const { name, type, ttl, records, line = there?.line ?? 'default_view' } = JSON.parse(body) as Sent;
    if (method === 'POST' && setsOf(zones, zone).some((one) => one.id === keyOf(name, type, line))) {
      throw new Refused('duplicate');
    }
    for (const text of records) {
      const value = type === 'TXT' ? text.replace(/^"(.*)"$/, '$1') : text.replace(/[.]$/, '');
      zones.create(zone, { name: name.replace(/[.]$/, ''), type, line, ttl, value });
    }
    return { status: 202, body: { id: keyOf(name, type, line) } };
  } catch (error) {
    zones.zones.set(zone, before);
    throw error;
  }
}

const keyOf = (name: string, type: string, line: string) =>
  createHash('md5').update(`${name} ${type} ${line}`).digest('hex');

function setsOf(zones: MemoryZones, zone: string) {
  const sets = Map.groupBy(zones.records(zone), ({ name, type, line }) => keyOf(`${name}.`, type, line));
  return [...sets].map(([id, members]) => {
    const { name, type, line, ttl } = members[0]!;
    return { id, name: `${name}.`, type, line, ttl, status: 'ACTIVE', records: members.map(contentOf), members };
  });
}

function contentOf({ type, value }: MemoryRecord): string {
  if (type === 'TXT') return `"${value}"`;
  return type === 'CNAME' ? `${value}.` : value;
}

function isSigned({ method, path, headers, body }: SeenRequest): boolean {
  const hash = (text: string) => createHash('sha256').update(text).digest('hex');
  const url = new URL(path, 'http://localhost');
  const query = [...url.searchParams]
    .map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(value).replaceAll('*', '%2A')}`)
    .sort()
    .join('&');
  const time = headers['x-sdk-date'];
  const request = `${method}\n${url.pathname}/\n${query}\nhost:${headers.host}\nx-sdk-date:${time}\n\nhost;x-sdk-date\n${hash(body)}`;
  const signature = createHmac('sha256', SECRET)
    .update(`SDK-HMAC-SHA256\n${time}\n${hash(request)}`)
    .digest('hex');
  return (
    headers.authorization === `SDK-HMAC-SHA256 Access=${ID}, SignedHeaders=host;x-sdk-date, Signature=${signature}`
  );
}
