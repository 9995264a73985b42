// Zones at Huawei Cloud DNS, whose API keeps sets of records. A set is replaced as a whole: there is no call that adds one
// value, so that a client that adds a value of its own between reading and writing is found out by reading back.
import { createHash, createHmac } from 'node:crypto';
import { RESOLUTION_LINES } from '../../../../contract/scalars/resolution-line.ts';
import { type Access, AdapterError, type AdapterKind, type Change, type RRset } from '../adapter.ts';
import { secretField, textField } from '../fields.ts';
import { applyChanges } from '../kit/apply.ts';
import { callProvider, jsonOf } from '../kit/http.ts';
import { codeOfLine, type LineCodes, lineOfCode } from '../kit/lines.ts';
import { once } from '../kit/once.ts';
import { readPages } from '../kit/pages.ts';
import { type Budget, budgetOf, reading } from '../kit/pause.ts';
import { saidError } from '../kit/said.ts';
import { planSets } from '../kit/set-plan.ts';
import { setKey } from '../kit/sets.ts';
import { canonicalName, canonicalValue, quoteTxt } from '../kit/values.ts';
import { readZones } from '../kit/zones.ts';

const PAGE = 500;
const limits = { minTtl: 1, maxTtl: 2_147_483_647 };
const LINES: LineCodes = {
  default: 'default_view',
  telecom: 'Dianxin',
  unicom: 'Liantong',
  mobile: 'Yidong',
  edu: 'Jiaoyuwang',
  overseas: 'Abroad',
};

interface HuaweiSet {
  id: string;
  name: string;
  type: string;
  ttl: number;
  records: string[];
  line: string;
  status?: string;
}

interface StoredSet extends RRset {
  id: string;
}

export const huaweicloudAdapter: AdapterKind = {
  key: 'huaweicloud',
  title: 'Huawei Cloud DNS',
  fields: [
    textField('access_key_id', { maxLength: 128 }),
    secretField('secret_access_key'),
    textField('region_id', { required: false, pattern: '^[a-z0-9-]+$', maxLength: 64, default: 'cn-north-4' }),
  ],
  capabilities: {
    recordTypes: ['A', 'AAAA', 'CNAME', 'TXT'],
    listZones: true,
    lines: RESOLUTION_LINES,
    apex: null,
    endpoint: 'fixed',
    ...limits,
    batch: 100,
    atomic: false,
    drift: 120,
  },
  permissions: [
    'dns:zone:list',
    'dns:recordset:list',
    'dns:recordset:create',
    'dns:recordset:update',
    'dns:recordset:delete',
  ],
  open(access) {
    const { zone } = access;
    const zoneId = once(async (signal) => {
      const { zones } = await call(
        access,
        'GET',
        `/v2/zones?type=public&limit=${PAGE}&name=${zone}.&search_mode=equal`,
        signal,
      );
      const found = ((zones ?? []) as { id: string; name: string }[]).find(({ name }) => canonicalName(name) === zone);
      if (!found) throw new AdapterError('not_found');
      return found.id;
    });
    const setsPath = async (signal: AbortSignal) => `/v2.1/zones/${await zoneId(signal)}/recordsets`;
    const readSets = async ({ signal }: Budget, names?: readonly string[]): Promise<StoredSet[]> => {
      const distinct = [...new Set(names ?? [])];
      const asked = distinct.length === 1 ? `&name=${encodeURIComponent(`${distinct[0]}.`)}&search_mode=equal` : '';
      const path = await setsPath(signal);
      const sets = await readPages<HuaweiSet>(
        ({ id }) => id,
        async (_page, before) => {
          const answer = await call(access, 'GET', `${path}?limit=${PAGE}&offset=${before}${asked}`, signal);
          const total = Number((answer.metadata as { total_count?: number } | undefined)?.total_count ?? 0);
          return { items: (answer.recordsets ?? []) as HuaweiSet[], total };
        },
      );
      return sets.map(storedOf);
    };
    const writer = {
      batch: 1,
      parallel: 4,
      limits,
      async write(changes: readonly Change[], budget: Budget) {
        const names = changes.map(({ name }) => name);
        const now = new Map((await readSets(budget, names)).map((set) => [setKey(set), set]));
        const path = await setsPath(budget.signal);
        for (const { name, type, line, after } of planSets(changes, now, limits)) {
          const before = now.get(setKey({ name, type, line }));
          const { signal } = budget;
          if (!after) await call(access, 'DELETE', `${path}/${before!.id}`, signal);
          else {
            const set = {
              name: `${name}.`,
              type,
              ttl: after.ttl,
              records: after.values.map((value) => contentOf(type, value)),
            };
            if (before) await call(access, 'PUT', `${path}/${before.id}`, signal, set);
            else await call(access, 'POST', path, signal, { ...set, line: codeOfLine(LINES, line) });
          }
        }
      },
      list: async (names: readonly string[], budget: Budget) => bare(await readSets(budget, names)),
    };
    return {
      list: async ({ names, signal } = {}) => {
        const budget = budgetOf(signal);
        return bare(await reading(budget, () => readSets(budget, names)));
      },
      apply: (changes, { signal } = {}) => applyChanges(writer, changes, signal),
      serial: async () => null,
      zones: ({ signal } = {}) =>
        readZones(signal, async (within, _page, before) => {
          const path = `/v2/zones?type=public&limit=${PAGE}&offset=${before}`;
          const answer = await call(access, 'GET', path, within);
          const total = Number((answer.metadata as { total_count?: number } | undefined)?.total_count ?? 0);
          return { items: ((answer.zones ?? []) as { name: string }[]).map(({ name }) => name), total };
        }),
      test: async ({ signal } = {}) => {
        const budget = budgetOf(signal);
        const sets = await reading(budget, () => readSets(budget));
        return { records: sets.reduce((sum, { values }) => sum + values.length, 0) };
      },
    };
  },
};

function storedOf({ id, name, type, ttl, records, line: code, status }: HuaweiSet): StoredSet {
  const line = status === 'DISABLE' ? ('other:disabled' as const) : lineOfCode(LINES, code);
  return {
    id,
    name: canonicalName(name),
    type,
    ...(line === 'default' ? {} : { line }),
    ttl,
    values: [...new Set(records.map((value) => canonicalValue(type, value)))].sort(),
  };
}

function bare(sets: readonly StoredSet[]): RRset[] {
  return sets.map(({ id: _id, ...set }) => set);
}

function contentOf(type: string, value: string): string {
  if (type === 'TXT') return quoteTxt(value);
  return type === 'CNAME' ? `${value}.` : value;
}

async function call(
  { credentials, endpoint, allow, timeoutMs }: Access,
  method: 'GET' | 'POST' | 'PUT' | 'DELETE',
  path: string,
  signal: AbortSignal,
  given?: unknown,
): Promise<Record<string, unknown>> {
  const url = new URL(`${endpoint ?? `https://dns.${credentials.region_id ?? 'cn-north-4'}.myhuaweicloud.com`}${path}`);
  const body = given === undefined ? '' : JSON.stringify(given);
  const writes = method !== 'GET';
  const { status, body: text } = await callProvider({
    method,
    url,
    headers: { 'content-type': 'application/json', ...sign(credentials, method, url, body) },
    ...(body === '' ? {} : { body }),
    writes,
    allow,
    timeoutMs,
    signal,
    detail: detailOf,
  });
  if (status === 204) return {};
  if (status < 300) return jsonOf(text, writes);
  const detail = detailOf(text);
  if (status === 404) {
    // A set that has gone since it was read is read again; a zone is not there.
    throw saidError(/recordsets[/]/.test(path) ? 'changed' : 'not_found', detail);
  }
  if (/exist/i.test(detail) && method === 'POST') throw saidError('changed', detail);
  throw new AdapterError(
    status === 409 || /conflict/i.test(detail) ? 'conflict' : 'invalid',
    detail || `HTTP ${status}`,
  );
}

/** SDK-HMAC-SHA256. */
function sign(credentials: Access['credentials'], method: string, url: URL, body: string): Record<string, string> {
  const time = new Date().toISOString().replace(/[-:]|[.][0-9]+/g, '');
  const query = [...url.searchParams]
    .map(([name, value]) => `${encode(name)}=${encode(value)}`)
    .sort()
    .join('&');
  const uri = `${url.pathname
    .split('/')
    .map((part) => encode(decodeURIComponent(part)))
    .join('/')}/`;
  const headers = `host:${url.host}\nx-sdk-date:${time}\n`;
  const canonical = [method, uri.replace(/[/]{2,}$/, '/'), query, headers, 'host;x-sdk-date', sha256(body)].join('\n');
  const signature = createHmac('sha256', credentials.secret_access_key!)
    .update(['SDK-HMAC-SHA256', time, sha256(canonical)].join('\n'))
    .digest('hex');
  const id = credentials.access_key_id;
  return {
    'x-sdk-date': time,
    authorization: `SDK-HMAC-SHA256 Access=${id}, SignedHeaders=host;x-sdk-date, Signature=${signature}`,
  };
}

function encode(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function detailOf(body: string): string {
  try {
    const { code, message, error_code, error_msg } = JSON.parse(body) as Record<string, string | undefined>;
    const said = code ?? error_code;
    return said === undefined ? '' : `${said}: ${message ?? error_msg ?? ''}`;
  } catch {
    return '';
  }
}
