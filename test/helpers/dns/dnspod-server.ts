// DNSPod's own API as far as zones and records go, written from its documentation: every response is a 200 with a code.
import { type MemoryRecord, type MemoryZones, Refused, shownName } from './memory-zones.ts';
import { type ProviderResponse, startProviderServer } from './provider-server.ts';

/** Pages are no longer than this, whatever is asked for. */
export const PAGE = 100;
const TOKEN = '12345,0123456789abcdef';
const CODES: Record<Refused['reason'], [string, string]> = {
  invalid: ['22', 'Subdomain is invalid'],
  conflict: ['31', 'Conflicting record'],
  duplicate: ['104', 'Record already exists'],
  missing: ['8', 'Record id is invalid'],
  ttl: ['35', 'TTL is too low'],
};
export const LINE_IDS: Record<string, string> = {
  default: '0',
  telecom: '10=0',
  unicom: '10=1',
  edu: '10=2',
  mobile: '10=3',
  overseas: '3=0',
};

export const startDnspod = () =>
  startProviderServer({
    credentials: { auth_token: TOKEN },
    wrong: { auth_token: '12345,another' },
    isWrite: ({ path }) => !path.endsWith('.List'),
    limited: {
      status: 200,
      headers: {},
      body: JSON.stringify({ status: { code: '-2', message: 'API usage limited' } }),
    },
    lineOf: (line) => LINE_IDS[line] ?? line.replace(/^other:/, ''),
    answer({ path, body }, zones) {
      const form = Object.fromEntries(new URLSearchParams(body));
      if (form.login_token !== TOKEN) return said('-1', 'Login fail');
      try {
        return answer(path.slice(1), form, zones);
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        return said(...CODES[error.reason]);
      }
    },
  });

function answer(action: string, form: Record<string, string>, zones: MemoryZones): ProviderResponse {
  const from = Number(form.offset ?? 0);
  const part = <T>(all: readonly T[]) => all.slice(from, from + Math.min(Number(form.length ?? PAGE), PAGE));
  if (action === 'Domain.List') {
    const all = [...zones.zones.keys()].map((name) => ({ name }));
    return said('1', 'Action completed successful', { info: { domain_total: all.length }, domains: part(all) });
  }
  const zone = form.domain!;
  if (!zones.zones.has(zone)) return said(action === 'Record.List' ? '6' : '13', 'Domain id invalid');
  if (action === 'Record.List') {
    const asked = form.sub_domain === '@' ? zone : `${form.sub_domain}.${zone}`;
    const found = zones.records(zone).filter(({ name }) => form.sub_domain === undefined || name === asked);
    if (found.length === 0) return said('10', 'No records');
    const records = part(found).map(({ id, name, type, value, ttl, line }) => ({
      id,
      name: name === zone ? '@' : shownName(name).slice(0, -zone.length - 1),
      type,
      value: type === 'CNAME' ? `${value}.` : value,
      ttl: String(ttl),
      line: 'as people call it',
      line_id: line,
      enabled: '1',
    }));
    return said('1', 'Action completed successful', { info: { record_total: String(found.length) }, records });
  }
  if (action === 'Record.Remove') {
    zones.delete(zone, form.record_id!);
    return said('1', 'Action completed successful');
  }
  const record: Omit<MemoryRecord, 'id'> = {
    name: form.sub_domain === '@' ? zone : `${form.sub_domain}.${zone}`,
    type: form.record_type!,
    line: form.record_line_id!,
    ttl: Number(form.ttl),
    value: form.value!.replace(/[.]$/, ''),
  };
  if (record.ttl < 600) throw new Refused('ttl');
  if (!Object.values(LINE_IDS).includes(record.line)) return said('26', 'Line is invalid');
  if (action === 'Record.Create') zones.create(zone, record);
  else if (action === 'Record.Modify') zones.update(zone, form.record_id!, record);
  else return { status: 404, body: {} };
  return said('1', 'Action completed successful', { record: {} });
}

function said(code: string, message: string, more: object = {}): ProviderResponse {
  return { status: 200, body: { status: { code, message, created_at: '' }, ...more } };
}
