import { setTimeout as sleep } from 'node:timers/promises';
import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { dns } from '../../contract/resources/dns.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { clusterCount } from '../../models/clusters/cluster.ts';
import { askForDnsRuns, openDnsRuns } from '../../models/dns/engine.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';

/** Below the time that a call may take. */
const WAIT_MS = 7_000;
const AGAIN_MS = 100;

/** Asks the engine for runs and waits until they have ended. Throws CLUSTER_NOT_FOUND and DNS_RECONCILE_BUSY. */
export async function reconcileDns(
  runtime: Runtime,
  input: Input<typeof dns.reconcile>,
  call: Call,
): Promise<Output<typeof dns.reconcile>> {
  const clusterId = input.clusterId ?? null;
  if (clusterId !== null && (await clusterCount(runtime.pools.api, clusterId)) === 0) fail('CLUSTER_NOT_FOUND');
  const until = Date.now() + WAIT_MS;
  const asked = await write(runtime, { ...call, idempotency: null }, {}, async (tx) => {
    const runs = await askForDnsRuns(tx.sql, clusterId);
    const target = { type: 'cluster', id: clusterId ?? '', name: null };
    await recordAudit(tx, 'dns.reconcile', target, { clusters: runs.length });
    return runs;
  });
  while ((await openDnsRuns(runtime.pools.api, asked)) > 0) {
    if (Date.now() > until) fail('DNS_RECONCILE_BUSY');
    await sleep(AGAIN_MS);
  }
  return { clusters: asked.length };
}
