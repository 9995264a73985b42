// Tries a credential before an order depends on it: a value is written where those of the zone's own name go, looked for at
// each server of the zone, and removed.
import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { fail } from '../../../contract/errors.ts';
import type { Input } from '../../../contract/procedure.ts';
import type { DnsTrial, dnsCredentials } from '../../../contract/resources/dns-credentials.ts';
import { recordAudit } from '../../../models/audit/audit-entry.ts';
import { forgetDnsRecord, noteTrialRecord } from '../../../models/certificates/acme-dns-record.ts';
import {
  type DnsCredentialRow,
  dnsCredentialById,
  setDnsCredentialError,
} from '../../../models/certificates/dns-credential.ts';
import type { Call } from '../../../runtime/call.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { write } from '../../../runtime/write.ts';
import type { TxtRecord } from '../../dns/adapters/adapter.ts';
import { challengeName } from '../../dns/adapters/names.ts';
import { allAnswer, serversOf } from '../acme/dns/authoritative.ts';
import { openProvider } from '../acme/dns/open-provider.ts';
import { zoneServers } from '../acme/dns/place-records.ts';
import { DnsFailed } from '../acme/dns/provider.ts';
import { TOOLS } from '../acme/tools.ts';

type Step = DnsTrial['steps'][number];

const CHANGE_MS = 8_000;
/** Servers that copy the zone have this time; orders give them three minutes. */
const LOOK_MS = 8_000;
const AGAIN_MS = 500;

/** Throws DNS_CREDENTIAL_NOT_FOUND. */
export async function tryDnsCredential(
  runtime: Runtime,
  { id }: Input<typeof dnsCredentials.try>,
  call: Call,
): Promise<DnsTrial> {
  const credential = (await dnsCredentialById(runtime.pools.api, id)) ?? fail('DNS_CREDENTIAL_NOT_FOUND');
  const value = randomBytes(32).toString('base64url');
  // Should this process end before it is removed, the job that removes records of orders does.
  const record = {
    certificateId: `trial ${randomUUID()}`,
    credentialId: id,
    name: challengeName(credential.zone),
    value,
  };
  if (!(await noteTrialRecord(runtime.pools.api, record))) fail('DNS_CREDENTIAL_NOT_FOUND');
  const provider = openProvider(runtime, credential);
  const written = await failureOf((signal) => provider.add(record, signal));
  const looked = written === null ? await looking(runtime, credential, record) : null;
  const removed = await failureOf((signal) => provider.remove(record, signal));
  const error = written ?? removed;
  return write(runtime, call, {}, async (tx) => {
    // What was not written, as far as anybody knows, is no reason to keep the credential: a value of a trial opens nothing.
    if (removed === null || written !== null) await forgetDnsRecord(tx.sql, record);
    await setDnsCredentialError(tx.sql, id, error);
    await recordAudit(tx, 'dns_credential.try', { type: 'dns_credential', id, name: credential.name }, { error });
    const wrote = written === null;
    return { steps: [stepOf('write', written), stepOf('look', looked, wrote), stepOf('remove', removed, wrote)] };
  });
}

function stepOf(step: Step['step'], error: string | null, tried = true): Step {
  if (!tried) return { step, state: 'skipped', error: null };
  return { step, state: error === null ? 'done' : 'failed', error };
}

/** Code of what kept a change from being made; null: it was made. */
async function failureOf(change: (signal: AbortSignal) => Promise<void>): Promise<string | null> {
  const signal = AbortSignal.timeout(CHANGE_MS);
  try {
    await change(signal);
    return null;
  } catch (error) {
    if (error instanceof DnsFailed) return error.code;
    if (signal.aborted) return 'dns_unreachable';
    throw error;
  }
}

/** Code of why not every server answers the value; null: all do. */
async function looking(runtime: Runtime, credential: DnsCredentialRow, record: TxtRecord): Promise<string | null> {
  const until = Date.now() + LOOK_MS;
  try {
    const servers = await serversOf(record.name, zoneServers(runtime, credential), TOOLS.resolver);
    while (!(await allAnswer(servers, record))) {
      if (Date.now() > until) return 'dns_propagation_timeout';
      await sleep(AGAIN_MS);
    }
    return null;
  } catch (error) {
    if (error instanceof DnsFailed) return error.code;
    throw error;
  }
}
