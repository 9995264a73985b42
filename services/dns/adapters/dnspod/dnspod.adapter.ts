// Zones at DNSPod, over its own API with a token. Tencent Cloud's API for the same zones is another adapter.
import { RESOLUTION_LINES } from '../../../../contract/scalars/resolution-line.ts';
import { type Access, AdapterError, type AdapterKind } from '../adapter.ts';
import { secretField } from '../fields.ts';
import { callProvider, jsonOf } from '../kit/http.ts';
import { codeOfLine, type LineCodes, lineOfCode } from '../kit/lines.ts';
import { readPages } from '../kit/pages.ts';
import { type RecordChange, recordAdapter, type StoredRecord } from '../kit/records.ts';
import { type Said, saidError } from '../kit/said.ts';
import { absoluteName, canonicalValue, relativeName } from '../kit/values.ts';
import { readZones } from '../kit/zones.ts';

const API = 'https://dnsapi.cn';
const PAGE = 3_000;
/** The least TTL of the free plan; paid ones allow less. */
const limits = { minTtl: 600, maxTtl: 604_800 };
/** Ids of lines, which are the same in every plan. */
export const DNSPOD_LINES: LineCodes = {
  default: '0',
  telecom: '10=0',
  unicom: '10=1',
  mobile: '10=3',
  edu: '10=2',
  overseas: '3=0',
};
const OK = '1';
const EMPTY: Readonly<Record<string, string>> = { 'Record.List': '10', 'Domain.List': '9' };

interface DnspodRecord {
  id: string;
  name: string;
  type: string;
  value: string;
  ttl: string;
  line_id: string;
  enabled?: string;
}

const CODES: Readonly<Record<string, Said>> = {
  '-1': 'denied',
  '-3': 'denied',
  '-4': 'denied',
  '-7': 'denied',
  '-8': 'denied',
  '85': 'denied',
  '-2': 'rate_limited',
  '3': 'timeout',
  // The record has come, or gone, since it was read: it is read again.
  '8': 'changed',
  '104': 'changed',
  '31': 'conflict',
};
/** Of calls that name a zone and no record. */
const NO_ZONE = new Set(['6', '7', '9', '13']);

export const dnspodAdapter: AdapterKind = {
  key: 'dnspod',
  title: 'DNSPod',
  fields: [secretField('auth_token', { placeholder: '12345,0123456789abcdef', pattern: '^[0-9]+,[0-9A-Za-z]+$' })],
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
  permissions: ['Record.List', 'Record.Create', 'Record.Modify', 'Record.Remove', 'Domain.List'],
  open(access) {
    const { zone } = access;
    return {
      ...recordAdapter({
        limits,
        batch: 1,
        parallel: 2,
        namesAlone: 5,
        async read(name, { signal }) {
          const asked = { domain: zone, ...(name === null ? {} : { sub_domain: relativeName(name, zone) }) };
          const records = await readPages<DnspodRecord>(
            ({ id }) => id,
            async (_page, before) => {
              const paged = { ...asked, offset: String(before), length: String(PAGE) };
              const answer = await call(access, 'Record.List', paged, false, signal);
              return { items: (answer.records ?? []) as DnspodRecord[], total: totalOf(answer, 'record_total') };
            },
          );
          return records.map((record) => storedOf(record, zone));
        },
        write: async ([change], { signal }) => {
          await writeRecord(access, change!, signal);
        },
      }),
      zones: ({ signal } = {}) =>
        readZones(signal, async (within, _page, before) => {
          const paged = { offset: String(before), length: String(PAGE) };
          const answer = await call(access, 'Domain.List', paged, false, within);
          const domains = (answer.domains ?? []) as { name: string }[];
          return { items: domains.map(({ name }) => name), total: totalOf(answer, 'domain_total') };
        }),
    };
  },
};

function totalOf({ info }: Record<string, unknown>, key: string): number {
  return Number((info as Record<string, unknown> | undefined)?.[key] ?? 0);
}

function storedOf({ id, name, type, value, ttl, line_id, enabled }: DnspodRecord, zone: string): StoredRecord {
  const line = enabled === '0' ? ('other:disabled' as const) : lineOfCode(DNSPOD_LINES, String(line_id));
  return { id, name: absoluteName(name, zone), type, line, ttl: Number(ttl), value: canonicalValue(type, value) };
}

async function writeRecord(access: Access, change: RecordChange, signal: AbortSignal): Promise<void> {
  const { zone } = access;
  if (change.do === 'remove') {
    await call(access, 'Record.Remove', { domain: zone, record_id: change.id }, true, signal);
    return;
  }
  const { name, type, line, ttl, value } = change.record;
  const record = {
    domain: zone,
    sub_domain: relativeName(name, zone),
    record_type: type,
    record_line_id: codeOfLine(DNSPOD_LINES, line),
    value: type === 'CNAME' ? `${value}.` : value,
    ttl: String(ttl),
  };
  if (change.do === 'create') await call(access, 'Record.Create', record, true, signal);
  else await call(access, 'Record.Modify', { ...record, record_id: change.id }, true, signal);
}

async function call(
  { credentials, endpoint = API, allow, timeoutMs }: Access,
  action: string,
  asked: Record<string, string>,
  writes: boolean,
  signal: AbortSignal,
): Promise<Record<string, unknown>> {
  const form = new URLSearchParams({
    login_token: credentials.auth_token!,
    format: 'json',
    error_on_empty: 'no',
    ...asked,
  });
  const { body } = await callProvider({
    method: 'POST',
    url: new URL(`${endpoint}/${action}`),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: form.toString(),
    writes,
    allow,
    timeoutMs,
    signal,
  });
  const answer = jsonOf(body, writes);
  const { code, message = '' } = (answer.status ?? {}) as { code?: string; message?: string };
  if (code === OK || (code !== undefined && code === EMPTY[action])) return answer;
  if (code === undefined) throw new AdapterError(writes ? 'timeout' : 'unavailable', 'the response has no status');
  const isZone = NO_ZONE.has(code) && !(writes && 'record_id' in asked);
  throw saidError(isZone ? 'not_found' : (CODES[code] ?? 'invalid'), `${code} ${message}`);
}
