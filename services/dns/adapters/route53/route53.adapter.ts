// Zones at Amazon Route 53. Sets that AWS answers by a policy of its own (weights, latency, aliases) are foreign lines.
import { type Access, AdapterError, type AdapterKind, type Change, type Line, type RRset } from '../adapter.ts';
import { secretField, textField } from '../fields.ts';
import { applyChanges } from '../kit/apply.ts';
import { callProvider } from '../kit/http.ts';
import { once } from '../kit/once.ts';
import { readPages } from '../kit/pages.ts';
import { type Budget, budgetOf, reading } from '../kit/pause.ts';
import { saidError } from '../kit/said.ts';
import { planSets } from '../kit/set-plan.ts';
import { setKey } from '../kit/sets.ts';
import { canonicalName, canonicalValue, quoteTxt } from '../kit/values.ts';
import { recordName } from '../names.ts';
import { type AwsKey, signAws } from './sign.ts';
import { elementOf, elementsOf, escapeXml, textOf, unescapeXml } from './xml.ts';

const VERSION = '2013-04-01';
const NAMESPACE = 'https://route53.amazonaws.com/doc/2013-04-01/';
const PARTITIONS: Readonly<Record<string, { endpoint: string; region: string }>> = {
  aws: { endpoint: 'https://route53.amazonaws.com', region: 'us-east-1' },
  'aws-cn': { endpoint: 'https://route53.amazonaws.com.cn', region: 'cn-northwest-1' },
  'aws-us-gov': { endpoint: 'https://route53.us-gov.amazonaws.com', region: 'us-gov-west-1' },
};
const PAGE = 300;
const ZONES_PAGE = 100;
const BATCH = 100;
/** Values of one request; a replaced set counts twice. */
const MAX_VALUES = 450;
/** Names up to this number are read alone: a request each, of five a second for everything of an account. */
const NAMES_ALONE = 3;
const limits = { minTtl: 0, maxTtl: 2_147_483_647 };

/** A set as it was read; deleting it takes exactly this. */
interface StoredSet extends RRset {
  xml: string;
}

export const route53Adapter: AdapterKind = {
  key: 'route53',
  title: 'Amazon Route 53',
  fields: [
    textField('access_key_id', { maxLength: 128 }),
    secretField('secret_access_key'),
    secretField('session_token', { required: false, maxLength: 4096 }),
    textField('hosted_zone_id', { required: false, pattern: '^[A-Z0-9]{1,32}$', maxLength: 32 }),
    {
      ...textField('partition', { required: false, default: 'aws' }),
      type: 'select',
      options: Object.keys(PARTITIONS),
    },
  ],
  capabilities: {
    recordTypes: ['A', 'AAAA', 'CNAME', 'TXT'],
    listZones: true,
    lines: [],
    apex: null,
    endpoint: 'fixed',
    ...limits,
    batch: BATCH,
    atomic: true,
    // Five requests a second for everything of an account, and a zone of 10,000 sets takes 34.
    drift: 300,
  },
  permissions: [
    'route53:ListHostedZonesByName',
    'route53:ListHostedZones',
    'route53:ListResourceRecordSets',
    'route53:ChangeResourceRecordSets',
  ],
  open(access) {
    const { zone, credentials } = access;
    const zoneId = once(async (signal) => credentials.hosted_zone_id ?? findZone(access, zone, signal));
    const readAll = async (budget: Budget, names?: readonly string[]) => {
      const id = await zoneId(budget.signal);
      const distinct = [...new Set(names ?? [])];
      if (distinct.length === 0 || distinct.length > NAMES_ALONE) return readSets(access, id, null, budget);
      const found: StoredSet[] = [];
      for (const name of distinct) found.push(...(await readSets(access, id, name, budget)));
      return found;
    };
    const writer = {
      batch: BATCH,
      parallel: 1,
      limits,
      async write(changes: readonly Change[], budget: Budget) {
        const sets = await readAll(
          budget,
          changes.map(({ name }) => name),
        );
        const now = new Map(sets.map((set) => [setKey(set), set]));
        await writeChanges(access, await zoneId(budget.signal), changes, now, budget);
      },
      list: async (names: readonly string[], budget: Budget) => bare(await readAll(budget, names)),
    };
    return {
      list: async ({ names, signal } = {}) => {
        const budget = budgetOf(signal);
        return bare(await reading(budget, () => readAll(budget, names)));
      },
      apply: (changes, { signal } = {}) => applyChanges(writer, changes, signal),
      serial: async () => null,
      zones: async ({ signal } = {}) => {
        const budget = budgetOf(signal);
        return reading(budget, () => listZones(access, budget.signal));
      },
      test: async ({ signal } = {}) => {
        const budget = budgetOf(signal);
        const sets = await reading(budget, () => readAll(budget));
        return { records: sets.reduce((sum, { values }) => sum + values.length, 0) };
      },
    };
  },
};

function bare(sets: readonly StoredSet[]): RRset[] {
  return sets.map(({ xml: _xml, ...set }) => set);
}

async function findZone(access: Access, zone: string, signal: AbortSignal): Promise<string> {
  const answer = await call(
    access,
    'GET',
    `/hostedzonesbyname?dnsname=${encodeURIComponent(zone)}&maxitems=10`,
    signal,
  );
  const found = elementsOf(answer, 'HostedZone').filter(
    (xml) => canonicalName(textOf(xml, 'Name') ?? '') === zone && textOf(xml, 'PrivateZone') !== 'true',
  );
  if (found.length > 1) throw new AdapterError('invalid', 'several zones have this name: give hosted_zone_id');
  const id = found[0] && textOf(found[0], 'Id');
  if (!id) throw new AdapterError('not_found');
  return id.replace('/hostedzone/', '');
}

async function listZones(access: Access, signal: AbortSignal): Promise<string[]> {
  let marker = '';
  const zones = await readPages<string>(
    (xml) => textOf(xml, 'Id') ?? '',
    async () => {
      const answer = await call(access, 'GET', `/hostedzone?maxitems=${ZONES_PAGE}${marker}`, signal);
      marker = `&marker=${encodeURIComponent(textOf(answer, 'NextMarker') ?? '')}`;
      const more = textOf(answer, 'IsTruncated') === 'true';
      return { items: elementsOf(answer, 'HostedZone'), total: null, more };
    },
  );
  const open = zones.filter((xml) => textOf(xml, 'PrivateZone') !== 'true');
  return open.flatMap((xml) => recordName(textOf(xml, 'Name') ?? '') ?? []).sort();
}

/** Sets of the zone, or of one name: lists are sorted by name. */
async function readSets(access: Access, id: string, name: string | null, { signal }: Budget): Promise<StoredSet[]> {
  let from = name === null ? '' : `&name=${encodeURIComponent(name)}`;
  const sets = await readPages<StoredSet>(setKey, async () => {
    const answer = await call(access, 'GET', `/hostedzone/${id}/rrset?maxitems=${PAGE}${from}`, signal);
    const items = elementsOf(answer, 'ResourceRecordSet').map(storedOf);
    const next = (what: string) => encodeURIComponent(textOf(answer, what) ?? '');
    const identifier = next('NextRecordIdentifier');
    from = `&name=${next('NextRecordName')}&type=${next('NextRecordType')}${identifier ? `&identifier=${identifier}` : ''}`;
    const isPast = name !== null && items.some((set) => set.name !== name);
    return { items, total: null, more: !isPast && textOf(answer, 'IsTruncated') === 'true' };
  });
  return name === null ? sets : sets.filter((set) => set.name === name);
}

function storedOf(xml: string): StoredSet {
  const type = textOf(xml, 'Type') ?? '';
  const identifier = textOf(xml, 'SetIdentifier');
  const isAlias = elementOf(xml, 'AliasTarget') !== null;
  const line: Line = identifier !== null ? `other:${identifier}` : isAlias ? 'other:alias' : 'default';
  const values = elementsOf(xml, 'Value').map((text) => canonicalValue(type, decimalEscapes(unescapeXml(text))));
  const alias = isAlias ? [`alias ${canonicalName(textOf(xml, 'DNSName') ?? '')}`] : [];
  return {
    name: canonicalName(textOf(xml, 'Name') ?? ''),
    type,
    ...(line === 'default' ? {} : { line }),
    ttl: Number(textOf(xml, 'TTL') ?? 0),
    values: [...new Set([...values, ...alias])].sort(),
    xml: `<ResourceRecordSet>${xml}</ResourceRecordSet>`,
  };
}

/** AWS writes bytes outside of ASCII in octal, everybody else in decimal. */
function decimalEscapes(text: string): string {
  return text.replace(/\\([0-3][0-7]{2})/g, (_whole, octal: string) => {
    return `\\${String(Number.parseInt(octal, 8)).padStart(3, '0')}`;
  });
}

async function writeChanges(
  access: Access,
  id: string,
  changes: readonly Change[],
  now: ReadonlyMap<string, StoredSet>,
  budget: Budget,
): Promise<void> {
  let waiting: string[] = [];
  let values = 0;
  let isPartial = false;
  for (const { name, type, line, after, isMerged } of planSets(changes, now, limits)) {
    const before = now.get(setKey({ name, type, line }));
    const made = after ? setXml(name, type, after) : '';
    const added = (before?.values.length ?? 0) + (after?.values.length ?? 0);
    if (values + added > MAX_VALUES) await send();
    values += added;
    if (!after) waiting.push(changeXml('DELETE', before!.xml));
    else if (!isMerged) waiting.push(changeXml('UPSERT', made));
    else {
      // Deleting exactly what was read fails if another client changed it: nothing of that client is lost.
      if (before) waiting.push(changeXml('DELETE', before.xml));
      waiting.push(changeXml(before ? 'UPSERT' : 'CREATE', made));
    }
  }
  await send();

  async function send(): Promise<void> {
    if (waiting.length === 0) return;
    const body = `<?xml version="1.0" encoding="UTF-8"?><ChangeResourceRecordSetsRequest xmlns="${NAMESPACE}"><ChangeBatch><Changes>${waiting.join('')}</Changes></ChangeBatch></ChangeResourceRecordSetsRequest>`;
    try {
      await call(access, 'POST', `/hostedzone/${id}/rrset/`, budget.signal, body);
    } catch (error) {
      if (!(error instanceof AdapterError) || !isPartial) throw error;
      const { kind, detail, retryAfter } = error;
      throw new AdapterError(kind, detail, { retryAfter, partial: true, cause: error });
    }
    isPartial = true;
    waiting = [];
    values = 0;
  }
}

function changeXml(action: string, set: string): string {
  return `<Change><Action>${action}</Action>${set}</Change>`;
}

function setXml(name: string, type: string, { ttl, values }: { ttl: number; values: readonly string[] }): string {
  const records = values.map((value) => {
    const content = type === 'TXT' ? octalEscapes(quoteTxt(value)) : type === 'CNAME' ? `${value}.` : value;
    return `<ResourceRecord><Value>${escapeXml(content)}</Value></ResourceRecord>`;
  });
  return `<ResourceRecordSet><Name>${escapeXml(name)}.</Name><Type>${type}</Type><TTL>${ttl}</TTL><ResourceRecords>${records.join('')}</ResourceRecords></ResourceRecordSet>`;
}

function octalEscapes(text: string): string {
  return text.replace(
    /\\([0-9]{3})/g,
    (_whole, decimal: string) => `\\${Number(decimal).toString(8).padStart(3, '0')}`,
  );
}

async function call(
  { credentials, endpoint, allow, timeoutMs }: Access,
  method: 'GET' | 'POST',
  path: string,
  signal: AbortSignal,
  body = '',
): Promise<string> {
  const partition = PARTITIONS[credentials.partition ?? 'aws']!;
  const url = new URL(`${endpoint ?? partition.endpoint}/${VERSION}${path}`);
  const key: AwsKey = {
    id: credentials.access_key_id!,
    secret: credentials.secret_access_key!,
    token: credentials.session_token,
    region: partition.region,
  };
  const time = `${new Date().toISOString().replace(/[-:]|[.][0-9]+/g, '')}`;
  const writes = method === 'POST';
  const { status, body: text } = await callProvider({
    method,
    url,
    headers: { ...signAws(key, { method, url, body, time }), ...(writes ? { 'content-type': 'text/xml' } : {}) },
    ...(writes ? { body } : {}),
    writes,
    allow,
    timeoutMs,
    signal,
    detail: detailOf,
  });
  if (status === 200) {
    if (/<(ChangeResourceRecordSets|List\w+)Response/.test(text)) return text;
    throw new AdapterError(writes ? 'timeout' : 'unavailable', 'the response is none of Route 53');
  }
  const code = textOf(text, 'Code') ?? '';
  const detail = detailOf(text);
  if (/^(Throttling|PriorRequestNotComplete|RequestLimitExceeded)/.test(code))
    throw new AdapterError('rate_limited', detail);
  if (code === 'NoSuchHostedZone' || status === 404) throw new AdapterError('not_found', detail);
  // The set changed since it was read.
  if (/do not match the current values|but it already exists|but it was not found/.test(detail)) {
    throw saidError('changed', detail);
  }
  throw new AdapterError(/conflict/i.test(detail) ? 'conflict' : 'invalid', detail);
}

function detailOf(body: string): string {
  const code = textOf(body, 'Code');
  const message = textOf(body, 'Message') ?? elementsOf(body, 'Message').join(' ');
  return code === null ? message : `${code}: ${message}`;
}
