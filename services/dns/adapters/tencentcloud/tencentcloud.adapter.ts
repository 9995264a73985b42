// Zones at Tencent Cloud, over its API 3.0 for DNSPod.
import { createHash, createHmac } from 'node:crypto';
import { RESOLUTION_LINES } from '../../../../contract/scalars/resolution-line.ts';
import { type Access, AdapterError, type AdapterKind } from '../adapter.ts';
import { DNSPOD_LINES } from '../dnspod/dnspod.adapter.ts';
import { secretField, textField } from '../fields.ts';
import { callProvider, jsonOf } from '../kit/http.ts';
import { codeOfLine, lineOfCode } from '../kit/lines.ts';
import { readPages } from '../kit/pages.ts';
import { type RecordChange, recordAdapter, type StoredRecord } from '../kit/records.ts';
import { type Said, saidError } from '../kit/said.ts';
import { absoluteName, canonicalValue, relativeName } from '../kit/values.ts';
import { readZones } from '../kit/zones.ts';

const ENDPOINTS: Readonly<Record<string, string>> = {
  cn: 'https://dnspod.tencentcloudapi.com',
  intl: 'https://dnspod.intl.tencentcloudapi.com',
};
const VERSION = '2021-03-23';
const SERVICE = 'dnspod';
const TYPE = 'application/json; charset=utf-8';
const PAGE = 3_000;
/** The least TTL of the free plan; paid ones allow less. */
const limits = { minTtl: 600, maxTtl: 604_800 };
/** The name of the line has to be given, and its id decides. */
const LINE_NAME = '默认';

interface TencentRecord {
  RecordId: number;
  Name: string;
  Type: string;
  Value: string;
  TTL: number;
  LineId: string;
  Status?: string;
}

const CODES: readonly [RegExp, Said][] = [
  [/^RequestLimitExceeded/, 'rate_limited'],
  [/^(AuthFailure|UnauthorizedOperation|FailedOperation[.]NotDomainOwner)/, 'denied'],
  [/(NoDataOfDomain|DomainNotExists|DomainIdInvalid|DomainInvalid|DomainNotInService)$/, 'not_found'],
  // The record has come, or gone, since it was read: it is read again.
  [/(DomainRecordExist|RecordIdInvalid|NoDataOfRecord)$/, 'changed'],
  [/Conflict/, 'conflict'],
  [/^(InternalError|FailedOperation[.]UnknowError)/, 'timeout'],
];
const EMPTY = 'ResourceNotFound.NoDataOfRecord';

export const tencentcloudAdapter: AdapterKind = {
  key: 'tencentcloud',
  title: 'Tencent Cloud DNS',
  fields: [
    textField('secret_id', { maxLength: 128 }),
    secretField('secret_key'),
    { ...textField('site', { required: false, default: 'cn' }), type: 'select', options: Object.keys(ENDPOINTS) },
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
    'dnspod:DescribeRecordList',
    'dnspod:DescribeDomainList',
    'dnspod:CreateRecord',
    'dnspod:ModifyRecord',
    'dnspod:DeleteRecord',
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
          const asked = { Domain: zone, ...(name === null ? {} : { Subdomain: relativeName(name, zone) }) };
          const records = await readPages<TencentRecord>(
            ({ RecordId }) => String(RecordId),
            async (_page, before) => {
              const paged = { ...asked, Offset: before, Limit: PAGE };
              const answer = await call(access, 'DescribeRecordList', paged, false, signal);
              const items = (answer.RecordList ?? []) as TencentRecord[];
              return { items, total: totalOf(answer.RecordCountInfo, 'TotalCount') };
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
          const answer = await call(access, 'DescribeDomainList', { Offset: before, Limit: PAGE }, false, within);
          const domains = (answer.DomainList ?? []) as { Name: string }[];
          return { items: domains.map(({ Name }) => Name), total: totalOf(answer.DomainCountInfo, 'DomainTotal') };
        }),
    };
  },
};

function totalOf(info: unknown, key: string): number {
  return Number((info as Record<string, unknown> | undefined)?.[key] ?? 0);
}

function storedOf({ RecordId, Name, Type, Value, TTL, LineId, Status }: TencentRecord, zone: string): StoredRecord {
  const line = Status === 'DISABLE' ? ('other:disabled' as const) : lineOfCode(DNSPOD_LINES, LineId);
  const value = canonicalValue(Type, Value);
  return { id: String(RecordId), name: absoluteName(Name, zone), type: Type, line, ttl: TTL, value };
}

async function writeRecord(access: Access, change: RecordChange, signal: AbortSignal): Promise<void> {
  const { zone } = access;
  if (change.do === 'remove') {
    await call(access, 'DeleteRecord', { Domain: zone, RecordId: Number(change.id) }, true, signal);
    return;
  }
  const { name, type, line, ttl, value } = change.record;
  const record = {
    Domain: zone,
    SubDomain: relativeName(name, zone),
    RecordType: type,
    RecordLine: LINE_NAME,
    RecordLineId: codeOfLine(DNSPOD_LINES, line),
    Value: type === 'CNAME' ? `${value}.` : value,
    TTL: ttl,
  };
  if (change.do === 'create') await call(access, 'CreateRecord', record, true, signal);
  else await call(access, 'ModifyRecord', { ...record, RecordId: Number(change.id) }, true, signal);
}

async function call(
  { credentials, endpoint, allow, timeoutMs }: Access,
  action: string,
  asked: Record<string, unknown>,
  writes: boolean,
  signal: AbortSignal,
): Promise<Record<string, unknown>> {
  const url = new URL(endpoint ?? ENDPOINTS[credentials.site ?? 'cn']!);
  const body = JSON.stringify(asked);
  const timestamp = Math.floor(Date.now() / 1000);
  const { body: text } = await callProvider({
    method: 'POST',
    url,
    headers: {
      'content-type': TYPE,
      'x-tc-action': action,
      'x-tc-version': VERSION,
      'x-tc-timestamp': String(timestamp),
      authorization: sign(credentials.secret_id!, credentials.secret_key!, url.host, body, timestamp),
    },
    body,
    writes,
    allow,
    timeoutMs,
    signal,
  });
  const { Response } = jsonOf(text, writes) as { Response?: Record<string, unknown> };
  if (!Response) throw new AdapterError(writes ? 'timeout' : 'unavailable', 'the response is none of Tencent Cloud');
  const { Code, Message = '' } = (Response.Error ?? {}) as { Code?: string; Message?: string };
  if (Code === undefined) return Response;
  if (Code === EMPTY && !writes) return {};
  throw saidError(CODES.find(([pattern]) => pattern.test(Code))?.[1] ?? 'invalid', `${Code}: ${Message}`);
}

/** TC3-HMAC-SHA256. */
function sign(id: string, secret: string, host: string, body: string, timestamp: number): string {
  const day = new Date(timestamp * 1000).toISOString().slice(0, 10);
  const headers = `content-type:${TYPE}\nhost:${host}\n`;
  const canonical = ['POST', '/', '', headers, 'content-type;host', sha256(body)].join('\n');
  const scope = `${day}/${SERVICE}/tc3_request`;
  const steps = [day, SERVICE, 'tc3_request'];
  const key = steps.reduce<string | Buffer>((before, text) => hmac(before, text), `TC3${secret}`);
  const signature = hmac(key, ['TC3-HMAC-SHA256', timestamp, scope, sha256(canonical)].join('\n')).toString('hex');
  return `TC3-HMAC-SHA256 Credential=${id}/${scope}, SignedHeaders=content-type;host, Signature=${signature}`;
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}
