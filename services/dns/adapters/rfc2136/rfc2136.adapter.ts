// Zones on servers of one's own: BIND, Knot and others that take signed updates and transfers over TCP.
import { TSIG_ALGORITHMS } from '../../../../contract/resources/dns-credentials.ts';
import { AdapterError, type AdapterKind, type TxtRecord } from '../adapter.ts';
import { secretField, textField } from '../fields.ts';
import { applyChanges } from '../kit/apply.ts';
import { budgetOf, reading } from '../kit/pause.ts';
import { groupSets } from '../kit/sets.ts';
import { recordName } from '../names.ts';
import { parseServerAddress } from '../server-address.ts';
import { TXT_TTL } from '../txt.ts';
import { CLASS_IN, CLASS_NONE } from './message.ts';
import { encodeData, typeCode } from './rdata.ts';
import type { TsigKey } from './tsig.ts';
import { changeZone, transferZone, updateZone, type Zone, zoneSerial } from './zone.ts';

const EXCHANGE_MS = 15_000;
const BATCH = 100;
/** Shorter keys are guessed. */
const MIN_KEY_BYTES = 16;
const limits = { minTtl: 0, maxTtl: 2_147_483_647 };

export const rfc2136Adapter: AdapterKind = {
  key: 'rfc2136',
  title: 'RFC 2136 (BIND, Knot)',
  fields: [
    textField('server', { placeholder: 'ns1.example.com:53', maxLength: 261 }),
    textField('tsig_key_name', { placeholder: 'console.example.com', maxLength: 253 }),
    {
      ...textField('tsig_algorithm', { required: false }),
      type: 'select',
      options: TSIG_ALGORITHMS,
      default: 'hmac-sha256',
    },
    secretField('tsig_secret', { maxLength: 1024 }),
  ],
  capabilities: {
    recordTypes: ['A', 'AAAA', 'CNAME', 'TXT'],
    listZones: false,
    lines: [],
    apex: null,
    endpoint: 'custom',
    ...limits,
    batch: BATCH,
    atomic: true,
    drift: 'serial',
  },
  permissions: ['update (A, AAAA, CNAME, TXT)', 'transfer (AXFR)'],
  check(credentials) {
    if (parseServerAddress(credentials.server!) === null) return 'server';
    if (recordName(credentials.tsig_key_name!) === null) return 'tsig_key_name';
    const { tsig_secret: secret = '' } = credentials;
    const key = Buffer.from(secret, 'base64');
    const isBase64 = key.toString('base64').replace(/=+$/, '') === secret.replace(/=+$/, '');
    return isBase64 && key.length >= MIN_KEY_BYTES ? null : 'tsig_secret';
  },
  open({ zone: name, credentials, allow, timeoutMs = EXCHANGE_MS }) {
    const zone: Zone = {
      server: { address: parseServerAddress(credentials.server!)!, allow, timeoutMs },
      zone: name,
      key: {
        name: recordName(credentials.tsig_key_name!)!,
        algorithm: (credentials.tsig_algorithm ?? 'hmac-sha256') as TsigKey['algorithm'],
        secret: Buffer.from(credentials.tsig_secret!, 'base64'),
      },
    };
    const read = (signal: AbortSignal | undefined) => {
      const budget = budgetOf(signal);
      return reading(budget, () => transferZone(zone, budget.signal));
    };
    const writer = {
      batch: BATCH,
      parallel: 1,
      limits,
      write: (changes: Parameters<typeof changeZone>[1], budget: { signal: AbortSignal }) =>
        changeZone(zone, changes, budget.signal),
      list: async (_names: readonly string[], budget: { signal: AbortSignal }) =>
        groupSets(await transferZone(zone, budget.signal)),
    };
    const text = (record: TxtRecord, add: boolean, signal: AbortSignal) => {
      const { name, value } = record;
      const change = add ? { class: CLASS_IN, ttl: TXT_TTL } : { class: CLASS_NONE, ttl: 0 };
      return updateZone(zone, [{ name, type: typeCode('TXT'), ...change, data: encodeData('TXT', value) }], signal);
    };
    return {
      list: async ({ signal } = {}) => groupSets(await read(signal)),
      apply: (changes, { signal } = {}) => applyChanges(writer, changes, signal),
      serial: async ({ signal } = {}) => {
        const budget = budgetOf(signal);
        return reading(budget, () => zoneSerial(zone, budget.signal));
      },
      zones: async () => {
        throw new AdapterError('unsupported');
      },
      test: async ({ signal } = {}) => ({ records: (await read(signal)).length }),
      // One update without prerequisites, as servers with a policy for TXT alone have always got it.
      txt: {
        add: (record, signal) => text(record, true, signal),
        remove: (record, signal) => text(record, false, signal),
      },
    };
  },
};
