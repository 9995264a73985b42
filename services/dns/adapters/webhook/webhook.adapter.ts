// Zones behind a receiver of one's own: one signed request for each list and each kind of change.
import { createHmac } from 'node:crypto';
import { type Access, AdapterError, type AdapterKind, type Change, type TxtRecord } from '../adapter.ts';
import { secretField, textField } from '../fields.ts';
import { applyChanges } from '../kit/apply.ts';
import { callProvider, jsonOf } from '../kit/http.ts';
import { type Budget, budgetOf, reading } from '../kit/pause.ts';
import { groupSets, MAX_RECORDS, type SingleRecord, setKey, setsByKey } from '../kit/sets.ts';
import { absoluteName, canonicalName, canonicalValue, relativeName } from '../kit/values.ts';
import { recordName } from '../names.ts';
import { serverUrl } from '../server-url.ts';
import { TXT_TTL } from '../txt.ts';

const BATCH = 100;
const MAX_ZONES = 10_000;
const NO_ZONES = 501;
const limits = { minTtl: 1, maxTtl: 2_147_483_647 };

interface SentRecord {
  /** Relative to the zone; `@`: the zone itself. */
  name: string;
  type: string;
  data: string;
  ttl: number;
}

export const webhookAdapter: AdapterKind = {
  key: 'webhook',
  title: 'Webhook',
  fields: [
    textField('url', { type: 'url', placeholder: 'https://dns.example.com/records', maxLength: 2048 }),
    secretField('secret', { pattern: null, maxLength: 1024 }),
  ],
  capabilities: {
    recordTypes: ['A', 'AAAA', 'CNAME', 'TXT'],
    listZones: true,
    lines: [],
    apex: null,
    endpoint: 'custom',
    ...limits,
    batch: BATCH,
    atomic: false,
    drift: 60,
  },
  permissions: ['list', 'append', 'set', 'delete', 'zones'],
  check: ({ url = '', secret = '' }) => {
    if (!(serverUrl(url) instanceof URL)) return 'url';
    return secret.length < 16 ? 'secret' : null;
  },
  open: (access) => {
    const { zone } = access;
    const writer = {
      batch: BATCH,
      parallel: 1,
      limits,
      write: (changes: readonly Change[], budget: Budget) => write(access, changes, budget),
      list: async (_names: readonly string[], budget: Budget) => groupSets(await list(access, budget)),
    };
    const read = (signal: AbortSignal | undefined) => {
      const budget = budgetOf(signal);
      return reading(budget, () => list(access, budget));
    };
    return {
      list: async ({ signal } = {}) => groupSets(await read(signal)),
      apply: (changes, { signal } = {}) => applyChanges(writer, changes, signal),
      serial: async () => null,
      zones: async ({ signal } = {}) => {
        const budget = budgetOf(signal);
        const { zones } = await reading(budget, () => call(access, { action: 'zones' }, false, budget.signal));
        if (!Array.isArray(zones)) throw new AdapterError('unavailable', 'the response has no `zones`');
        const names = zones.slice(0, MAX_ZONES).map((name) => recordName(String(name)));
        return names.filter((name) => name !== null).sort();
      },
      test: async ({ signal } = {}) => ({ records: (await read(signal)).length }),
      // Receivers for validation alone know these two requests and no others.
      txt: {
        add: (record, signal) => present(access, 'present', record, zone, signal),
        remove: (record, signal) => present(access, 'cleanup', record, zone, signal),
      },
    };
  },
};

async function present(
  access: Access,
  action: 'present' | 'cleanup',
  { name, value }: TxtRecord,
  zone: string,
  signal: AbortSignal,
): Promise<void> {
  await send(access, { action, zone, name, type: 'TXT', value, ttl: TXT_TTL }, true, signal);
}

async function list(access: Access, { signal }: Budget): Promise<SingleRecord[]> {
  const { records } = await call(access, { action: 'list', zone: access.zone }, false, signal);
  if (!Array.isArray(records)) throw new AdapterError('unavailable', 'the response has no `records`');
  if (records.length > MAX_RECORDS) throw new AdapterError('invalid', `more than ${MAX_RECORDS} records`);
  return records.map((record: Partial<SentRecord> | null): SingleRecord => {
    const { name, type, data, ttl } = record ?? {};
    if (typeof name !== 'string' || typeof type !== 'string' || typeof data !== 'string' || typeof ttl !== 'number') {
      throw new AdapterError('unavailable', 'a record lacks `name`, `type`, `data` or `ttl`');
    }
    const kind = type.toUpperCase();
    return {
      name: canonicalName(absoluteName(name, access.zone)),
      type: kind,
      line: 'default',
      ttl,
      value: canonicalValue(kind, data),
    };
  });
}

/** Changes of one kind that follow each other go in one request. */
async function write(access: Access, changes: readonly Change[], budget: Budget): Promise<void> {
  let isPartial = false;
  for (let at = 0; at < changes.length; ) {
    const { action } = changes[at]!;
    const part: Change[] = [];
    const sets = new Set<string>();
    for (; at < changes.length; at++) {
      const change = changes[at]!;
      if (change.action !== action || sets.has(setKey(change))) break;
      sets.add(setKey(change));
      part.push(change);
    }
    try {
      const records = await recordsOf(access, part, budget);
      if (records.length > 0) await send(access, { action, zone: access.zone, records }, true, budget.signal);
    } catch (error) {
      if (!(error instanceof AdapterError) || !isPartial) throw error;
      const { kind, detail, retryAfter } = error;
      throw new AdapterError(kind, detail, { retryAfter, partial: true, cause: error });
    }
    isPartial = true;
  }
}

async function recordsOf(access: Access, changes: readonly Change[], budget: Budget): Promise<SentRecord[]> {
  const isWhole = changes.some((change) => change.action === 'delete' && !change.values);
  const sets = isWhole ? setsByKey(groupSets(await list(access, budget))) : new Map();
  return changes.flatMap((change) => {
    const name = relativeName(change.name, access.zone);
    const { type } = change;
    const ttl = change.action === 'delete' ? 0 : change.ttl;
    const values: string[] = change.values ?? sets.get(setKey(change))?.values ?? [];
    return values.map((data) => ({ name, type, data, ttl }));
  });
}

async function call(
  access: Access,
  body: Record<string, unknown>,
  writes: boolean,
  signal: AbortSignal,
): Promise<Record<string, unknown>> {
  return jsonOf(await send(access, body, writes, signal), writes);
}

async function send(
  { credentials, allow, timeoutMs }: Access,
  given: Record<string, unknown>,
  writes: boolean,
  signal: AbortSignal,
): Promise<string> {
  const body = JSON.stringify(given);
  const timestamp = String(Math.floor(Date.now() / 1000));
  const signature = createHmac('sha256', credentials.secret!).update(`${timestamp}.${body}`).digest('hex');
  const { status, body: answer } = await callProvider({
    method: 'POST',
    url: new URL(credentials.url!),
    headers: {
      'content-type': 'application/json',
      'x-svc-timestamp': timestamp,
      'x-svc-signature': `v1=${signature}`,
    },
    body,
    writes,
    allow,
    timeoutMs,
    signal,
    notHere: NO_ZONES,
  });
  if (status >= 200 && status < 300) return answer;
  if (status === NO_ZONES) throw new AdapterError('unsupported');
  if (status === 404) throw new AdapterError('not_found');
  if (status === 408) throw new AdapterError(writes ? 'timeout' : 'unavailable', 'HTTP 408');
  throw new AdapterError(status === 409 ? 'conflict' : 'invalid', `HTTP ${status}`);
}
