// Alibaba Cloud DNS as far as zones and records go, written from its documentation: signed forms, pages, lines.
import { createHmac } from 'node:crypto';
import { type MemoryRecord, type MemoryZones, Refused, shownName } from './memory-zones.ts';
import { type ProviderResponse, startProviderServer } from './provider-server.ts';

/** Pages are no longer than this, whatever is asked for. */
export const PAGE = 100;
const [ID, SECRET] = ['an-id', 'a-secret-of-the-test'];
const CODES: Record<Refused['reason'], string> = {
  invalid: 'InvalidRR.Format',
  conflict: 'DomainRecordConflict',
  duplicate: 'DomainRecordDuplicate',
  missing: 'DomainRecordNotBelongToUser',
  ttl: 'InvalidTTL',
};

const LINES: Record<string, string> = { overseas: 'oversea' };

export const startAlidns = () =>
  startProviderServer({
    credentials: { access_key_id: ID, access_key_secret: SECRET },
    wrong: { access_key_id: ID, access_key_secret: 'another' },
    isWrite: ({ body }) => !new URLSearchParams(body).get('Action')?.startsWith('Describe'),
    limited: { status: 400, headers: {}, body: JSON.stringify({ Code: 'Throttling.User', Message: 'slow down' }) },
    lineOf: (line) => LINES[line] ?? line.replace(/^other:/, ''),
    answer({ method, body }, zones) {
      const form = Object.fromEntries(new URLSearchParams(body));
      if (!isSigned(method, form)) return failed(400, 'SignatureDoesNotMatch');
      try {
        return answer(form, zones);
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        return failed(400, CODES[error.reason]);
      }
    },
  });

function answer(form: Record<string, string>, zones: MemoryZones): ProviderResponse {
  const action = form.Action!;
  if (action === 'DescribeDomains') {
    const names = [...zones.zones.keys()].map((DomainName) => ({ DomainName }));
    return done(paged(form, names, (Domain) => ({ Domains: { Domain } })));
  }
  const zone = form.DomainName ?? zoneOf(zones, form.RecordId!);
  if (zone === undefined) throw new Refused('missing');
  if (!zones.zones.has(zone)) return failed(400, 'InvalidDomainName.NoExist');
  if (action.startsWith('Describe')) {
    const found = zones.records(zone).filter(({ name }) => form.SubDomain === undefined || name === form.SubDomain);
    const shown = found.map(({ id, name, type, value, ttl, line }) => ({
      RecordId: id,
      RR: name === zone ? '@' : shownName(name).slice(0, -zone.length - 1),
      Type: type,
      Value: value,
      TTL: ttl,
      Line: line,
      Status: 'ENABLE',
    }));
    return done(paged(form, shown, (Record) => ({ DomainRecords: { Record } })));
  }
  if (action === 'DeleteDomainRecord') {
    zones.delete(zone, form.RecordId!);
    return done({});
  }
  const record: Omit<MemoryRecord, 'id'> = {
    name: form.RR === '@' ? zone : `${form.RR}.${zone}`,
    type: form.Type!,
    line: form.Line!,
    ttl: Number(form.TTL),
    value: form.Value!,
  };
  if (record.ttl < 600) throw new Refused('ttl');
  if (!['default', 'telecom', 'unicom', 'mobile', 'edu', 'oversea'].includes(record.line)) throw new Refused('invalid');
  if (action === 'AddDomainRecord') return done({ RecordId: zones.create(zone, record).id });
  if (action === 'UpdateDomainRecord') return done({ RecordId: zones.update(zone, form.RecordId!, record).id });
  return failed(400, 'InvalidAction');
}

function zoneOf(zones: MemoryZones, id: string): string | undefined {
  return [...zones.zones].find(([, records]) => records.has(id))?.[0];
}

function paged(form: Record<string, string>, all: unknown[], wrap: (items: unknown[]) => object): object {
  const size = Math.min(Number(form.PageSize ?? 20), PAGE);
  const from = (Number(form.PageNumber ?? 1) - 1) * size;
  return { TotalCount: all.length, PageNumber: from / size + 1, PageSize: size, ...wrap(all.slice(from, from + size)) };
}

function isSigned(method: string, { Signature, ...form }: Record<string, string>): boolean {
  const strict = (text: string) =>
    [...Buffer.from(text)]
      .map((byte) => {
        const char = String.fromCharCode(byte);
        return /[A-Za-z0-9._~-]/.test(char) ? char : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
      })
      .join('');
  const query = Object.entries(form)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([key, value]) => `${strict(key)}=${strict(value)}`)
    .join('&');
  const text = `${method}&${strict('/')}&${strict(query)}`;
  return createHmac('sha1', `${SECRET}&`).update(text).digest('base64') === Signature && form.AccessKeyId === ID;
}

function done(body: object): ProviderResponse {
  return { status: 200, body: { RequestId: 'of-the-test', ...body } };
}

function failed(status: number, Code: string): ProviderResponse {
  return { status, body: { RequestId: 'of-the-test', Code, Message: 'as documented' } };
}
