// Tencent Cloud's API 3.0 for DNSPod as far as zones and records go, written from its documentation.
import { createHash, createHmac } from 'node:crypto';
import { LINE_IDS } from './dnspod-server.ts';
import type { SeenRequest } from './faulty-proxy.ts';
import { type MemoryRecord, type MemoryZones, Refused, shownName } from './memory-zones.ts';
import { type ProviderResponse, startProviderServer } from './provider-server.ts';

/** Pages are no longer than this, whatever is asked for. */
export const PAGE = 100;
const [ID, SECRET] = ['an-id', 'a-secret-of-the-test'];
const CODES: Record<Refused['reason'], string> = {
  invalid: 'InvalidParameter.SubdomainInvalid',
  conflict: 'InvalidParameter.RecordConflict',
  duplicate: 'InvalidParameter.DomainRecordExist',
  missing: 'InvalidParameter.RecordIdInvalid',
  ttl: 'LimitExceeded.RecordTtlLimit',
};
const action = ({ headers }: SeenRequest) => String(headers['x-tc-action']);

export const startTencent = () =>
  startProviderServer({
    credentials: { secret_id: ID, secret_key: SECRET },
    wrong: { secret_id: ID, secret_key: 'another' },
    isWrite: (request) => !action(request).startsWith('Describe'),
    limited: {
      status: 200,
      headers: {},
      body: JSON.stringify({ Response: { Error: { Code: 'RequestLimitExceeded', Message: 'slow down' } } }),
    },
    lineOf: (line) => LINE_IDS[line] ?? line.replace(/^other:/, ''),
    answer(request, zones) {
      if (!isSigned(request)) return failed('AuthFailure.SignatureFailure');
      try {
        return answer(action(request), JSON.parse(request.body), zones);
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        return failed(CODES[error.reason]);
      }
    },
  });

interface Asked {
  Domain: string;
  Subdomain?: string;
  Offset?: number;
  Limit?: number;
  RecordId: number;
  SubDomain: string;
  RecordType: string;
  RecordLine?: string;
  RecordLineId: string;
  Value: string;
  TTL: number;
}

function answer(name: string, asked: Asked, zones: MemoryZones): ProviderResponse {
  const from = asked.Offset ?? 0;
  const part = <T>(all: readonly T[]) => all.slice(from, from + Math.min(asked.Limit ?? PAGE, PAGE));
  if (name === 'DescribeDomainList') {
    const all = [...zones.zones.keys()].map((Name) => ({ Name }));
    return done({ DomainCountInfo: { DomainTotal: all.length }, DomainList: part(all) });
  }
  const zone = asked.Domain;
  if (!zones.zones.has(zone)) return failed('InvalidParameterValue.DomainNotExists');
  const full = (relative: string) => (relative === '@' ? zone : `${relative}.${zone}`);
  if (name === 'DescribeRecordList') {
    const { Subdomain } = asked;
    const found = zones.records(zone).filter((one) => Subdomain === undefined || one.name === full(Subdomain));
    if (found.length === 0) return failed('ResourceNotFound.NoDataOfRecord');
    const RecordList = part(found).map(({ id, name: at, type, value, ttl, line }) => ({
      RecordId: Number(id),
      Name: at === zone ? '@' : shownName(at).slice(0, -zone.length - 1),
      Type: type,
      Value: type === 'CNAME' ? `${value}.` : value,
      TTL: ttl,
      Line: 'as people call it',
      LineId: line,
      Status: 'ENABLE',
    }));
    return done({ RecordCountInfo: { TotalCount: found.length, ListCount: RecordList.length }, RecordList });
  }
  if (name === 'DeleteRecord') {
    zones.delete(zone, String(asked.RecordId));
    return done({});
  }
  const record: Omit<MemoryRecord, 'id'> = {
    name: full(asked.SubDomain),
    type: asked.RecordType,
    line: asked.RecordLineId,
    ttl: asked.TTL,
    value: asked.Value.replace(/[.]$/, ''),
  };
  if (asked.RecordLine === undefined) return failed('MissingParameter');
  if (record.ttl < 600) throw new Refused('ttl');
  if (!Object.values(LINE_IDS).includes(record.line)) return failed('InvalidParameter.RecordLineInvalid');
  if (name === 'CreateRecord') return done({ RecordId: Number(zones.create(zone, record).id) });
  if (name === 'ModifyRecord') return done({ RecordId: Number(zones.update(zone, String(asked.RecordId), record).id) });
  return failed('InvalidAction');
}

function isSigned({ headers, body }: SeenRequest): boolean {
  const hash = (text: string) => createHash('sha256').update(text).digest('hex');
  const mac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest();
  const day = new Date(Number(headers['x-tc-timestamp']) * 1000).toISOString().slice(0, 10);
  const request = `POST\n/\n\ncontent-type:${headers['content-type']}\nhost:${headers.host}\n\ncontent-type;host\n${hash(body)}`;
  const scope = `${day}/dnspod/tc3_request`;
  const text = `TC3-HMAC-SHA256\n${headers['x-tc-timestamp']}\n${scope}\n${hash(request)}`;
  const key = mac(mac(mac(`TC3${SECRET}`, day), 'dnspod'), 'tc3_request');
  const signature = mac(key, text).toString('hex');
  return (
    headers['x-tc-version'] === '2021-03-23' &&
    headers.authorization ===
      `TC3-HMAC-SHA256 Credential=${ID}/${scope}, SignedHeaders=content-type;host, Signature=${signature}`
  );
}

function done(more: object): ProviderResponse {
  return { status: 200, body: { Response: { RequestId: 'of-the-test', ...more } } };
}

function failed(Code: string): ProviderResponse {
  return { status: 200, body: { Response: { RequestId: 'of-the-test', Error: { Code, Message: 'as documented' } } } };
}
