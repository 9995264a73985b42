// Zones on a PowerDNS Authoritative Server, over its HTTP API.
import { type Access, AdapterError, type AdapterKind, type Change, type RRset } from '../adapter.ts';
import { secretField, textField } from '../fields.ts';
import { applyChanges } from '../kit/apply.ts';
import { callProvider, jsonOf } from '../kit/http.ts';
import { type Budget, budgetOf, reading } from '../kit/pause.ts';
import { groupSets, MAX_RECORDS, type SingleRecord } from '../kit/sets.ts';
import { canonicalName, canonicalValue, quoteTxt } from '../kit/values.ts';
import { recordName } from '../names.ts';
import { serverUrl } from '../server-url.ts';

const BATCH = 100;
const MAX_ZONES = 10_000;
const limits = { minTtl: 1, maxTtl: 2_147_483_647 };

interface ServerSet {
  name: string;
  type: string;
  ttl: number;
  records: { content: string; disabled?: boolean }[];
}

export const powerdnsAdapter: AdapterKind = {
  key: 'powerdns',
  title: 'PowerDNS',
  fields: [
    textField('server_url', { type: 'url', placeholder: 'https://ns1.example.com:8081', maxLength: 2048 }),
    secretField('api_key', { maxLength: 1024 }),
    textField('server_id', { required: false, pattern: '^[A-Za-z0-9_.-]+$', maxLength: 64, default: 'localhost' }),
  ],
  capabilities: {
    recordTypes: ['A', 'AAAA', 'CNAME', 'TXT'],
    listZones: true,
    lines: [],
    apex: null,
    endpoint: 'custom',
    ...limits,
    batch: BATCH,
    atomic: true,
    // Edits in its database do not change the serial.
    drift: 60,
  },
  permissions: ['api-key'],
  check: ({ server_url: url = '' }) => (serverUrl(url) instanceof URL ? null : 'server_url'),
  open: (access) => {
    const read = (signal: AbortSignal | undefined) => {
      const budget = budgetOf(signal);
      return reading(budget, () => readSets(access, budget));
    };
    const writer = {
      batch: BATCH,
      parallel: 1,
      limits,
      write: (changes: readonly Change[], budget: Budget) => write(access, changes, budget),
      list: async (_names: readonly string[], budget: Budget) => toSets(await readSets(access, budget)),
    };
    return {
      list: async ({ signal } = {}) => toSets(await read(signal)),
      apply: (changes, { signal } = {}) => applyChanges(writer, changes, signal),
      serial: async () => null,
      zones: async ({ signal } = {}) => {
        const budget = budgetOf(signal);
        const zones = await reading(budget, () => call(access, 'GET', '/zones', budget.signal));
        if (!Array.isArray(zones)) throw new AdapterError('unavailable', 'the response is no list of zones');
        const names = zones.slice(0, MAX_ZONES).map(({ name }: { name?: string }) => recordName(name ?? ''));
        return names.filter((name) => name !== null).sort();
      },
      test: async ({ signal } = {}) => {
        return { records: (await read(signal)).reduce((sum, { records }) => sum + records.length, 0) };
      },
    };
  },
};

async function readSets(access: Access, { signal }: Budget): Promise<ServerSet[]> {
  const { rrsets } = (await call(access, 'GET', zonePath(access), signal)) as { rrsets?: ServerSet[] };
  if (!Array.isArray(rrsets)) throw new AdapterError('unavailable', 'the response has no `rrsets`');
  if (rrsets.length > MAX_RECORDS) throw new AdapterError('invalid', `more than ${MAX_RECORDS} records`);
  return rrsets;
}

function toSets(sets: readonly ServerSet[]): RRset[] {
  return groupSets(
    sets.flatMap(({ name, type, ttl, records }) =>
      records
        .filter(({ disabled }) => !disabled)
        .map(({ content }): SingleRecord => {
          return { name: canonicalName(name), type, line: 'default', ttl, value: canonicalValue(type, content) };
        }),
    ),
  );
}

/** The server replaces sets whole: changes of one set are put together first. */
async function write(access: Access, changes: readonly Change[], budget: Budget): Promise<void> {
  const now = new Map((await readSets(access, budget)).map((set) => [`${canonicalName(set.name)} ${set.type}`, set]));
  const planned = new Map<string, ServerSet>();
  for (const change of changes) {
    const key = `${change.name} ${change.type}`;
    const set = planned.get(key) ?? now.get(key);
    // Later changes of a name, such as the CNAME after the address, have to come later here, too.
    planned.delete(key);
    planned.set(key, changed(change, set));
  }
  const rrsets = [...planned.values()].map((set) => {
    const gone = set.records.length === 0;
    return { ...set, name: `${canonicalName(set.name)}.`, changetype: gone ? 'DELETE' : 'REPLACE' };
  });
  await call(access, 'PATCH', zonePath(access), budget.signal, JSON.stringify({ rrsets }));
}

function changed(change: Change, set: ServerSet | undefined): ServerSet {
  const { name, type } = change;
  const records = set?.records ?? [];
  const valueIn = ({ content }: { content: string }) => canonicalValue(type, content);
  if (change.action === 'delete') {
    const { values } = change;
    return {
      name,
      type,
      ttl: set?.ttl ?? 0,
      records: values ? records.filter((one) => !values.includes(valueIn(one))) : [],
    };
  }
  const wanted = [...new Set(change.values)].map((value) => ({ content: contentOf(type, value), disabled: false }));
  if (change.action === 'set') return { name, type, ttl: change.ttl, records: wanted };
  const others = records.filter((one) => !change.values.includes(valueIn(one)));
  return { name, type, ttl: records.length > 0 ? set!.ttl : change.ttl, records: [...others, ...wanted] };
}

function contentOf(type: string, value: string): string {
  if (type === 'TXT') return quoteTxt(value);
  return type === 'CNAME' ? `${value}.` : value;
}

function zonePath({ zone }: Access): string {
  return `/zones/${encodeURIComponent(`${zone}.`)}`;
}

async function call(
  { credentials, allow, timeoutMs }: Access,
  method: 'GET' | 'PATCH',
  path: string,
  signal: AbortSignal,
  body?: string,
): Promise<unknown> {
  const { server_url: base = '', server_id: server = 'localhost', api_key: key = '' } = credentials;
  const writes = method !== 'GET';
  const { status, body: answer } = await callProvider({
    method,
    url: new URL(`${base.replace(/[/]+$/, '')}/api/v1/servers/${encodeURIComponent(server)}${path}`),
    headers: { 'x-api-key': key, accept: 'application/json', 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body }),
    writes,
    allow,
    timeoutMs,
    signal,
    detail: detailOf,
  });
  if (status === 204) return {};
  if (status === 404) throw new AdapterError('not_found', detailOf(answer));
  if (status >= 300) throw new AdapterError(/conflict/i.test(answer) ? 'conflict' : 'invalid', detailOf(answer));
  return jsonOf(answer, writes);
}

function detailOf(body: string): string {
  return /"error"\s*:\s*"((?:[^"\\]|\\.)*)"/.exec(body)?.[1] ?? '';
}
