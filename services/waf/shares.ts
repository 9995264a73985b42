// Watches how much of the requests of each site the WAF takes for attacks, and tells where that jumps: against the day before,
// by what nodes counted, so that neither a busy site nor one that is always scanned is told of.

import type { FoundAttention } from '../../mixins/attention.ts';
import { HOUR_MS, MINUTE_MS } from '../../mixins/sweep.ts';
import { wafSums } from '../../models/waf/waf-guidance.ts';
import {
  endWafShare,
  mayAlert,
  raisedWafShares,
  raiseWafShare,
  type WafShareRow,
  wafShares,
} from '../../models/waf/waf-share.ts';
import type { Runtime } from '../../runtime/runtime.ts';

type Sql = Runtime['pools']['api'];

/** Nodes tell of a minute within two. */
const TOLD_MS = 2 * MINUTE_MS;
const WATCHED_MS = 5 * MINUTE_MS;
const BEFORE_MS = 24 * HOUR_MS;
/** Of a mode that is younger there is nothing to compare with. */
const LEAST_BEFORE_MS = 30 * MINUTE_MS;
const LEAST_ATTACKS = 50;
const TIMES = 3;
/** Of 100 requests, beyond those before. */
const LEAST_MORE = 5;

/** Looks at the five newest minutes that nodes have had the time to tell of. Harmless when two processes do. */
export async function watchWafShares(
  { pools }: Pick<Runtime, 'pools'>,
  now: Date,
  signal?: AbortSignal,
): Promise<void> {
  const sql = pools.api;
  const to = new Date(Math.floor((now.getTime() - TOLD_MS) / MINUTE_MS) * MINUTE_MS + MINUTE_MS);
  const from = new Date(to.getTime() - WATCHED_MS);
  for (const site of await wafShares(sql, from, to)) {
    if (signal?.aborted) return;
    await watch(sql, site, from, now);
  }
}

async function watch(sql: Sql, site: WafShareRow, from: Date, now: Date): Promise<void> {
  const { siteId, attacks } = site;
  const observed = percent(attacks, site.requests);
  if (site.open !== null) {
    if (observed < site.open) await endWafShare(sql, siteId, now);
    return;
  }
  if (attacks < LEAST_ATTACKS || observed < LEAST_MORE || site.modeSince === null) return;
  const since = Math.max(from.getTime() - BEFORE_MS, site.modeSince.getTime());
  if (since > from.getTime() - LEAST_BEFORE_MS || !(await mayAlert(sql, siteId, now))) return;
  const before = await wafSums(sql, siteId, new Date(since), from);
  const threshold = jumpFrom(percent(before.wouldBlock + before.blocked, before.requests));
  if (observed >= threshold) await raiseWafShare(sql, siteId, { observed, threshold }, now);
}

/** The share, in percent, from which on there are far more attacks than before. */
export function jumpFrom(before: number): number {
  return Math.max(TIMES * before, before + LEAST_MORE);
}

function percent(attacks: number, requests: number): number {
  return requests === 0 ? 0 : (100 * attacks) / requests;
}

/** Sites where it is so now. */
export async function wafShareAttention(sql: Sql, clusterId: string | null): Promise<FoundAttention[]> {
  const raised = await raisedWafShares(sql, clusterId);
  return raised.map(({ since, named, ...group }) => ({
    kind: 'sites_waf_share',
    ...group,
    at: since.toISOString(),
    named: named.map(({ id, name }) => ({ type: 'site', id, name, reason: null })),
  }));
}
