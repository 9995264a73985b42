// Zones at Cloudflare, over its API v4. Records are written without its proxy.
import { type Access, AdapterError, type AdapterKind } from '../adapter.ts';
import { secretField } from '../fields.ts';
import { callProvider, jsonOf } from '../kit/http.ts';
import { once } from '../kit/once.ts';
import { readPages } from '../kit/pages.ts';
import { type RecordChange, recordAdapter, type StoredRecord } from '../kit/records.ts';
import { saidError } from '../kit/said.ts';
import { canonicalName, canonicalValue, quoteTxt } from '../kit/values.ts';
import { readZones } from '../kit/zones.ts';

const API = 'https://api.cloudflare.com/client/v4';
const PAGE = 1_000;
const ZONES_PAGE = 50;
const BATCH = 100;
const limits = { minTtl: 60, maxTtl: 86_400 };
/** A TTL of 1 means that Cloudflare chooses, which is this. */
const AUTOMATIC = 1;
const AUTOMATIC_TTL = 300;

interface CloudflareRecord {
  id: string;
  name: string;
  type: string;
  content: string;
  ttl: number;
  proxied?: boolean;
}

interface Envelope<T> {
  success?: boolean;
  errors?: { code: number; message: string }[];
  result?: T;
  result_info?: { total_count?: number };
}

/** Codes of errors that say what the status does not. */
const DENIED = new Set([6003, 6111, 9106, 9109, 10000]);
const CONFLICT = new Set([81053, 81054]);
/** The record has gone, or the same one has come, since it was read: it is read again. */
const CHANGED = new Set([81044, 81057, 81058]);
const NO_ZONE = new Set([7003, 1001]);

export const cloudflareAdapter: AdapterKind = {
  key: 'cloudflare',
  title: 'Cloudflare',
  fields: [secretField('api_token'), secretField('zone_token', { required: false })],
  capabilities: {
    recordTypes: ['A', 'AAAA', 'CNAME', 'TXT'],
    listZones: true,
    lines: [],
    apex: 'cname',
    endpoint: 'fixed',
    ...limits,
    batch: BATCH,
    atomic: true,
    // 1,200 requests in five minutes for everything of an account.
    drift: 60,
  },
  permissions: ['Zone:Read', 'DNS:Edit'],
  open(access) {
    const { zone } = access;
    const zoneId = once(async (signal) => {
      const found = await call<{ id: string }[]>(access, 'GET', `/zones?name=${encodeURIComponent(zone)}`, signal);
      return found.result?.[0]?.id ?? missing();
    });
    const recordsPath = async (signal: AbortSignal) => `/zones/${await zoneId(signal)}/dns_records`;
    return {
      ...recordAdapter({
        limits,
        batch: BATCH,
        parallel: 1,
        namesAlone: 3,
        async read(name, { signal }) {
          const base = `${await recordsPath(signal)}?per_page=${PAGE}${name === null ? '' : `&name=${encodeURIComponent(name)}`}`;
          const records = await readPages<CloudflareRecord>(
            ({ id }) => id,
            async (page) => {
              const answer = await call<CloudflareRecord[]>(access, 'GET', `${base}&page=${page + 1}`, signal);
              return { items: answer.result ?? [], total: answer.result_info?.total_count ?? 0 };
            },
          );
          return records.map(storedOf);
        },
        async write(changes, { signal }) {
          await call(access, 'POST', `${await recordsPath(signal)}/batch`, signal, batchOf(changes));
        },
      }),
      zones: ({ signal } = {}) =>
        readZones(signal, async (within, page) => {
          const path = `/zones?per_page=${ZONES_PAGE}&page=${page + 1}`;
          const answer = await call<{ name: string }[]>(access, 'GET', path, within);
          return {
            items: (answer.result ?? []).map(({ name }) => name),
            total: answer.result_info?.total_count ?? 0,
          };
        }),
    };
  },
};

function missing(): never {
  throw new AdapterError('not_found');
}

function storedOf({ id, name, type, content, ttl, proxied }: CloudflareRecord): StoredRecord {
  const seconds = ttl === AUTOMATIC ? AUTOMATIC_TTL : ttl;
  return {
    id,
    name: canonicalName(name),
    type,
    line: 'default',
    // The proxy answers with addresses of its own: the record differs from any that is written here.
    ttl: proxied ? 0 : seconds,
    value: canonicalValue(type, content),
  };
}

function batchOf(changes: readonly RecordChange[]): unknown {
  const deletes: unknown[] = [];
  const patches: unknown[] = [];
  const posts: unknown[] = [];
  for (const change of changes) {
    if (change.do === 'remove') {
      deletes.push({ id: change.id });
      continue;
    }
    const { name, type, ttl, value } = change.record;
    const record = { name, type, ttl, content: type === 'TXT' ? quoteTxt(value) : value, proxied: false };
    if (change.do === 'create') posts.push(record);
    else patches.push({ id: change.id, ...record });
  }
  return { deletes, patches, posts };
}

async function call<T>(
  { credentials, endpoint = API, allow, timeoutMs }: Access,
  method: 'GET' | 'POST',
  path: string,
  signal: AbortSignal,
  body?: unknown,
): Promise<Envelope<T>> {
  const token = path.startsWith('/zones?') ? (credentials.zone_token ?? credentials.api_token) : credentials.api_token;
  const writes = method === 'POST';
  const { status, body: text } = await callProvider({
    method,
    url: new URL(`${endpoint}${path}`),
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    writes,
    allow,
    timeoutMs,
    signal,
    detail: detailOf,
  });
  const answer = jsonOf(text, writes) as Envelope<T>;
  if (answer.success === true) return answer;
  const codes = (answer.errors ?? []).map(({ code }) => code);
  const has = (set: ReadonlySet<number>) => codes.some((code) => set.has(code));
  const detail = detailOf(text);
  if (has(DENIED)) throw new AdapterError('denied', detail);
  if (has(CHANGED)) throw saidError('changed', detail);
  if (has(NO_ZONE) || status === 404) throw new AdapterError('not_found', detail);
  throw new AdapterError(has(CONFLICT) ? 'conflict' : 'invalid', detail);
}

function detailOf(body: string): string {
  try {
    const { errors = [] } = JSON.parse(body) as Envelope<unknown>;
    return errors.map(({ code, message }) => `${code} ${message}`).join(', ');
  } catch {
    return '';
  }
}
