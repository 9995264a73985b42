// Opens and closes alerts: the attention list of the whole installation, kept as rows, whether or not somebody looks at it.
import type { AlertSource } from '../../mixins/alerts.ts';
import type { AttentionSource, FoundAttention } from '../../mixins/attention.ts';
import { MAX_SUBJECTS, type OpenAlert, writeAlerts } from '../../models/alerts/alert.ts';
import { readAlertPolicy } from '../../models/alerts/alert-policy.ts';
import { readFleetFactsToReview } from '../../models/overview/fleet-facts.ts';
import type { Runtime } from '../../runtime/runtime.ts';

/**
 * Reviews the alerts of all kinds that the sources register. Where a source throws, its alerts stay as they are; the others are
 * reviewed, then an AggregateError is thrown.
 */
export async function reviewAlerts(
  { pools }: Pick<Runtime, 'pools'>,
  { attention, alerts: found }: { attention: readonly AttentionSource[]; alerts: readonly AlertSource[] },
  now: Date,
): Promise<void> {
  const fleet = readFleetFactsToReview(pools.api);
  // Sources may need nothing of it.
  fleet.catch(() => undefined);
  const policy = readAlertPolicy(pools.api);
  policy.catch(() => undefined);
  const settled = await Promise.allSettled([
    ...attention.map(async (source) => alertsOf(source, await source.find(pools.api, null, fleet))),
    ...found.map(async (source) => foundOf(source, await source.find(pools.api, await policy))),
  ]);
  const reviewed = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const alerts = reviewed.flatMap(({ open }) => open);
  const complete = reviewed.flatMap((one) => one.complete);
  await writeAlerts(pools.api, alerts, complete, now);
  const errors = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
  if (errors.length > 0) throw new AggregateError(errors, 'alerts of some kinds were not reviewed');
}

interface Reviewed {
  open: readonly OpenAlert[];
  /** Kinds of which nothing was left out. */
  complete: readonly string[];
}

function foundOf({ kinds }: AlertSource, open: readonly OpenAlert[]): Reviewed {
  const isCut = (kind: string) => open.filter((one) => one.kind === kind).length >= MAX_SUBJECTS;
  return { open, complete: kinds.filter((kind) => !isCut(kind)) };
}

/** The alerts that a source's items raise, and the kinds of which it has left out nothing. */
export function alertsOf({ kinds }: Pick<AttentionSource, 'kinds'>, items: readonly FoundAttention[]): Reviewed {
  const open: OpenAlert[] = [];
  const complete: string[] = [];
  for (const [kind, { alert, most = Number.POSITIVE_INFINITY }] of Object.entries(kinds)) {
    if (alert === null) continue;
    const own = items.filter((item) => item.kind === kind);
    const cut = own.length >= most || own.some(({ subjects = [] }) => subjects.length > MAX_SUBJECTS);
    if (!cut) complete.push(kind);
    for (const item of own)
      for (const id of idsOf(alert, item)) open.push({ kind, subject: alert, id, ...detailOf(item) });
  }
  return { open, complete };
}

function detailOf({ percent }: FoundAttention): Pick<OpenAlert, 'detail'> {
  return percent === null || percent === undefined ? {} : { detail: { percent } };
}

function idsOf(alert: OpenAlert['subject'], { clusterId, subjects = [] }: FoundAttention): readonly string[] {
  if (alert === 'installation') return [''];
  if (alert === 'cluster') return clusterId ? [clusterId] : [];
  return subjects.slice(0, MAX_SUBJECTS);
}
