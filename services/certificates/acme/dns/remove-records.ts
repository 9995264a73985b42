// Removes records of orders that are over, however they ended; what cannot be removed is tried again, ever more seldom.
import {
  type DnsRecord,
  forgetDnsRecord,
  isRecordNeeded,
  postponeRemoval,
  takeEndedRecords,
} from '../../../../models/certificates/acme-dns-record.ts';
import { dnsCredentialById, setDnsCredentialError } from '../../../../models/certificates/dns-credential.ts';
import type { Runtime } from '../../../../runtime/runtime.ts';
import { parallel } from '../parallel.ts';
import { openProvider } from './open-provider.ts';
import { DnsFailed } from './provider.ts';

const BATCH = 20;
const AT_A_TIME = 4;
/** The last of a batch is begun within this time, so that it ends before another process may take it. */
const BEGIN_MS = 60_000;

export async function removeEndedRecords(runtime: Runtime, signal: AbortSignal): Promise<void> {
  const { pools, log } = runtime;
  const sql = pools.api;
  const until = Date.now() + BEGIN_MS;
  const records = await takeEndedRecords(sql, BATCH);
  // The values of a name go one after the other.
  const names = Map.groupBy(records, ({ credentialId, name }) => `${credentialId} ${name}`);
  await parallel([...names.values()], AT_A_TIME, async (values) => {
    for (const record of values) {
      if (signal.aborted || Date.now() > until) return;
      await removeOne(record);
    }
  });

  async function removeOne(record: DnsRecord): Promise<void> {
    if (await isRecordNeeded(sql, record)) return forgetDnsRecord(sql, record);
    // Rows of records keep their credential.
    const credential = (await dnsCredentialById(sql, record.credentialId))!;
    try {
      await openProvider(runtime, credential).remove(record, signal);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof DnsFailed) await setDnsCredentialError(sql, credential.id, error.code);
      else log.error({ err: error, credential: credential.id }, 'dns record not removed');
      return postponeRemoval(sql, record);
    }
    await forgetDnsRecord(sql, record);
  }
}
