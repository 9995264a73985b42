// The decision what names of a cluster should be: one DNS revision, in the transaction of what led to it.
import type { DnsReason } from '../../contract/resources/cluster-dns.ts';
import { hint, leaveHints } from '../../models/db/live-hint.ts';
import { type DnsSettings, lockDnsBinding, settingsOf } from '../../models/dns/binding.ts';
import { type DnsNodeFact, dnsNodes } from '../../models/dns/facts.ts';
import { readDnsProtection } from '../../models/dns/protection-setting.ts';
import { type DnsRevisionRow, dnsRevision, endBlockedRevision, insertDnsRevision } from '../../models/dns/revision.ts';
import type { Tx } from '../../runtime/write.ts';
import { differenceOf, isBlocked, removalOf } from './protection.ts';
import { addressSets } from './targets.ts';

export interface DnsCause {
  reason: DnsReason;
  params?: Record<string, unknown>;
}

/**
 * Publishes a DNS revision if the records of the cluster should be others than those of the newest one. Returns its number, or
 * null if nothing changes. A cluster without DNS settings has none.
 */
export async function publishDns(tx: Tx, clusterId: string, { reason, params = {} }: DnsCause): Promise<number | null> {
  const row = await lockDnsBinding(tx.sql, clusterId);
  if (!row) return null;
  const binding = settingsOf(row);
  const [target, held] = [
    await dnsRevision(tx.sql, clusterId, row.target),
    await dnsRevision(tx.sql, clusterId, row.blocked),
  ];
  const sets = addressSets(binding, await dnsNodes(tx.sql, [clusterId]));
  const forced = reason === 'force';
  if (!forced && isDecided({ binding, sets }, target)) {
    if (held) await endBlockedRevision(tx.sql, clusterId);
    return null;
  }
  if (!forced && held && same(held, { binding, sets })) return null;
  const removal = removalOf(target ?? null, { binding, sets });
  const blocked = !forced && isBlocked(removal, (await readDnsProtection(tx.sql)).massRemovalRatio);
  const number = await insertDnsRevision(
    tx.sql,
    {
      clusterId,
      status: blocked ? 'blocked' : binding.mode === 'manual' ? 'applied' : 'pending',
      reason,
      reasonParams: params,
      actor: tx.call.actor,
      binding,
      sets,
      difference: differenceOf(target?.sets ?? [], sets),
      removed: removal.removed,
      previous: removal.previous,
    },
    tx.now,
  );
  await leaveHints(tx.sql, [hint('settings', 'dns')]);
  tx.wake = true;
  return number;
}

/** Whether the nodes as they are lead to what was decided already, be it held or not: no transaction is needed to see that. */
export function isAsDecided(
  row: DnsSettings,
  nodes: readonly DnsNodeFact[],
  target: DnsRevisionRow | undefined,
  held: DnsRevisionRow | undefined,
): boolean {
  const binding = settingsOf(row);
  const now = { binding, sets: addressSets(binding, nodes) };
  return held ? same(held, now) : isDecided(now, target);
}

function isDecided(now: Content, target: DnsRevisionRow | undefined): boolean {
  return target ? same(target, now) : now.binding.mode === 'off';
}

type Content = Pick<DnsRevisionRow, 'binding' | 'sets'>;

function same(one: Content, other: Content): boolean {
  return textOf(one) === textOf(other);
}

const textOf = ({ binding, sets }: Content): string => JSON.stringify(canonical([binding, sets]));

/** Keys in one order: what comes from the database has lost its own. */
function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical);
  if (value === null || typeof value !== 'object') return value;
  const entries = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(entries.map(([key, inner]) => [key, canonical(inner)]));
}
