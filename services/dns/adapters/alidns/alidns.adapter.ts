// Zones at Alibaba Cloud DNS, over its RPC API of 2015-01-09.
import { createHmac, randomUUID } from 'node:crypto';
import { RESOLUTION_LINES } from '../../../../contract/scalars/resolution-line.ts';
import { type Access, AdapterError, type AdapterKind } from '../adapter.ts';
import { secretField, textField } from '../fields.ts';
import { callProvider, jsonOf } from '../kit/http.ts';
import { codeOfLine, type LineCodes, lineOfCode } from '../kit/lines.ts';
import { readPages } from '../kit/pages.ts';
import { type RecordChange, recordAdapter, type StoredRecord } from '../kit/records.ts';
import { type Said, saidError } from '../kit/said.ts';
import { absoluteName, canonicalValue, relativeName } from '../kit/values.ts';
import { readZones } from '../kit/zones.ts';

const API = 'https://alidns.aliyuncs.com';
const VERSION = '2015-01-09';
const PAGE = 500;
const ZONES_PAGE = 100;
/** The least TTL of the free edition; paid ones allow less. */
const limits = { minTtl: 600, maxTtl: 86_400 };
const LINES: LineCodes = {
  default: 'default',
  telecom: 'telecom',
  unicom: 'unicom',
  mobile: 'mobile',
  edu: 'edu',
  overseas: 'oversea',
};
const DISABLED = 'disabled';

interface AlidnsRecord {
  RecordId: string;
  RR: string;
  Type: string;
  Value: string;
  TTL: number;
  Line: string;
  Status?: string;
}

const CODES: readonly [RegExp, Said][] = [
  [/^Throttling/, 'rate_limited'],
  [/^(InvalidAccessKeyId|SignatureDoesNotMatch|Forbidden|InvalidSecurityToken|IncompleteSignature)/, 'denied'],
  [/^(InvalidDomainName[.]NoExist|IncorrectDomainUser|DomainNotFound)/, 'not_found'],
  // It has come, or gone, since it was read: it is read again.
  [/^(DomainRecordDuplicate|DomainRecordNotBelongToUser|InvalidRecordId)/, 'changed'],
  [/^DomainRecordConflict/, 'conflict'],
  [/^(ServiceUnavailable|SystemBusy)/, 'unavailable'],
  [/^InternalError/, 'timeout'],
];

export const alidnsAdapter: AdapterKind = {
  key: 'alidns',
  title: 'Alibaba Cloud DNS',
  fields: [
    textField('access_key_id', { maxLength: 128 }),
    secretField('access_key_secret'),
    textField('region_id', { required: false, pattern: '^[a-z0-9-]+$', maxLength: 64 }),
    secretField('security_token', { required: false, maxLength: 4096 }),
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
    'alidns:DescribeDomainRecords',
    'alidns:DescribeSubDomainRecords',
    'alidns:DescribeDomains',
    'alidns:AddDomainRecord',
    'alidns:UpdateDomainRecord',
    'alidns:DeleteDomainRecord',
  ],
  open(access) {
    const { zone } = access;
    return {
      ...recordAdapter({
        limits,
        batch: 1,
        parallel: 4,
        namesAlone: 5,
        async read(name, { signal }) {
          const asked =
            name === null
              ? { Action: 'DescribeDomainRecords', DomainName: zone }
              : { Action: 'DescribeSubDomainRecords', SubDomain: name, DomainName: zone };
          const records = await readPages<AlidnsRecord>(
            ({ RecordId }) => RecordId,
            async (page) => {
              const paged = { ...asked, PageNumber: String(page + 1), PageSize: String(PAGE) };
              const answer = await call(access, paged, false, signal);
              const { Record = [] } = (answer.DomainRecords ?? {}) as { Record?: AlidnsRecord[] };
              return { items: Record, total: Number(answer.TotalCount ?? 0) };
            },
          );
          return records.map((record) => storedOf(record, zone));
        },
        write: async ([change], { signal }) => {
          await call(access, asked(change!, zone), true, signal);
        },
      }),
      zones: ({ signal } = {}) =>
        readZones(signal, async (within, page) => {
          const paged = { Action: 'DescribeDomains', PageNumber: String(page + 1), PageSize: String(ZONES_PAGE) };
          const answer = await call(access, paged, false, within);
          const { Domain = [] } = (answer.Domains ?? {}) as { Domain?: { DomainName: string }[] };
          return { items: Domain.map(({ DomainName }) => DomainName), total: Number(answer.TotalCount ?? 0) };
        }),
    };
  },
};

function storedOf({ RecordId, RR, Type, Value, TTL, Line, Status }: AlidnsRecord, zone: string): StoredRecord {
  const line = Status === 'DISABLE' ? (`other:${DISABLED}` as const) : lineOfCode(LINES, Line);
  const value = canonicalValue(Type, Value);
  return { id: RecordId, name: absoluteName(RR, zone), type: Type, line, ttl: TTL, value };
}

function asked(change: RecordChange, zone: string): Record<string, string> {
  if (change.do === 'remove') return { Action: 'DeleteDomainRecord', RecordId: change.id };
  const { name, type, line, ttl, value } = change.record;
  const record = {
    RR: relativeName(name, zone),
    Type: type,
    Value: value,
    TTL: String(ttl),
    Line: codeOfLine(LINES, line),
  };
  if (change.do === 'create') return { Action: 'AddDomainRecord', DomainName: zone, ...record };
  return { Action: 'UpdateDomainRecord', RecordId: change.id, ...record };
}

async function call(
  { credentials, endpoint = API, allow, timeoutMs }: Access,
  asked: Record<string, string>,
  writes: boolean,
  signal: AbortSignal,
): Promise<Record<string, unknown>> {
  const { access_key_id: id = '', access_key_secret: secret = '', security_token: token } = credentials;
  const parameters: Record<string, string> = {
    ...asked,
    ...(token === undefined ? {} : { SecurityToken: token }),
    ...(credentials.region_id === undefined ? {} : { RegionId: credentials.region_id }),
    Format: 'JSON',
    Version: VERSION,
    AccessKeyId: id,
    SignatureMethod: 'HMAC-SHA1',
    SignatureVersion: '1.0',
    SignatureNonce: randomUUID(),
    Timestamp: new Date().toISOString().replace(/[.][0-9]+/, ''),
  };
  const query = Object.keys(parameters)
    .sort()
    .map((key) => `${encode(key)}=${encode(parameters[key]!)}`)
    .join('&');
  const signature = createHmac('sha1', `${secret}&`)
    .update(`POST&%2F&${encode(query)}`)
    .digest('base64');
  const { status, body } = await callProvider({
    method: 'POST',
    url: new URL(endpoint),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: `${query}&Signature=${encode(signature)}`,
    writes,
    allow,
    timeoutMs,
    signal,
    detail: detailOf,
  });
  const answer = jsonOf(body, writes);
  if (status === 200 && typeof answer.RequestId === 'string' && answer.Code === undefined) return answer;
  const code = String(answer.Code ?? '');
  if (code === '') throw new AdapterError(writes ? 'timeout' : 'unavailable', `HTTP ${status}`);
  throw saidError(CODES.find(([pattern]) => pattern.test(code))?.[1] ?? 'invalid', detailOf(body));
}

function encode(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}

function detailOf(body: string): string {
  try {
    const { Code, Message } = JSON.parse(body) as { Code?: string; Message?: string };
    return Code === undefined ? '' : `${Code}: ${Message ?? ''}`;
  } catch {
    return '';
  }
}
