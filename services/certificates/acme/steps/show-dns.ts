// Values are written where the authority looks, and it is asked only when every server of the zone answers them.
import { type DnsRecord, dnsRecordsOf, noteDnsRecords } from '../../../../models/certificates/acme-dns-record.ts';
import { holdLease } from '../../../../models/certificates/acme-order.ts';
import { setDnsCredentialError } from '../../../../models/certificates/dns-credential.ts';
import { systemCall } from '../../../../runtime/call.ts';
import { write } from '../../../../runtime/write.ts';
import { allAnswer, type Server, serversOf } from '../dns/authoritative.ts';
import { openProvider } from '../dns/open-provider.ts';
import { credentialOf, recordPlaces, recordValue, zoneServers } from '../dns/place-records.ts';
import { DnsFailed } from '../dns/provider.ts';
import { OrderFailed } from '../failure.ts';
import { parallel } from '../parallel.ts';
import type { Next, StepContext } from '../step.ts';
import { keyAuthorizations } from './show.ts';

/** Names whose records are changed, or asked for, at a time. */
const AT_A_TIME = 4;
/** Servers answer a value within this time, or the order ends. */
const PROPAGATION_MS = 3 * 60_000;
const LOOK_MS = 2_000;
const REMOVING_MS = 1_000;
const NAMES_TOLD = 20;

export async function presentDns(context: StepContext): Promise<Next> {
  const { runtime, order, signal } = context;
  const credential = await credentialOf(context);
  const authorized = await keyAuthorizations(context);
  const shown = order.authorizations.filter(({ token }) => authorized.has(token));
  const places = await recordPlaces(
    context,
    credential,
    shown.map(({ name }) => name),
  );
  const records = new Map<string, DnsRecord>();
  for (const { name: of, token } of shown) {
    const [name, value] = [places.get(of)!, recordValue(authorized.get(token)!)];
    const { certificateId } = order;
    records.set(`${name} ${value}`, { certificateId, credentialId: credential.id, name, value });
  }
  const noted = await write(runtime, systemCall('acme'), {}, async (tx) => {
    await holdLease(tx.sql, order);
    return noteDnsRecords(tx.sql, [...records.values()]);
  });
  if (!noted) return { to: 'present', waitMs: REMOVING_MS };
  const provider = openProvider(runtime, credential);
  // Servers behind webhooks may read a name, add a value and write it: its values go one after the other.
  const names = Map.groupBy(records.values(), ({ name }) => name);
  try {
    await parallel([...names.values()], AT_A_TIME, async (values) => {
      for (const record of values) await provider.add(record, signal);
    });
  } catch (error) {
    if (error instanceof DnsFailed) await setDnsCredentialError(runtime.pools.api, credential.id, error.code);
    throw error;
  }
  await setDnsCredentialError(runtime.pools.api, credential.id, null);
  return { to: 'propagate' };
}

export async function propagateDns(context: StepContext): Promise<Next> {
  const { runtime, order, tools, now } = context;
  const zone = zoneServers(runtime, await credentialOf(context));
  const records = await dnsRecordsOf(runtime.pools.api, order.certificateId);
  const missing = new Set<string>();
  const servers = new Map<string, Promise<Server[]>>();
  await parallel(records, AT_A_TIME, async (record) => {
    const { name } = record;
    // One alone says that it is too early: the others are asked next time.
    if (missing.size > 0 && !isLate(context)) return;
    if (!servers.has(name)) servers.set(name, serversOf(name, zone, tools.resolver));
    if (!(await allAnswer(await servers.get(name)!, record))) missing.add(name);
  });
  if (missing.size === 0) return { to: 'validate' };
  if (isLate({ order, now })) {
    throw new OrderFailed('dns_propagation_timeout', { names: [...missing].sort().slice(0, NAMES_TOLD) });
  }
  return { to: 'propagate', waitMs: LOOK_MS };
}

function isLate({ order, now }: Pick<StepContext, 'order' | 'now'>): boolean {
  return now.getTime() - order.stepAt.getTime() > PROPAGATION_MS;
}
