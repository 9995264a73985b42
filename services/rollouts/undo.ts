// Takes back a publication to everybody that makes visitors suffer: its entries get the versions of before it, and nothing
// else of the cluster is touched. Once for a change; where changes of many sites go wrong at once, something else is, and
// nothing more is taken back.
import { errorCodeOf } from '../../contract/errors.ts';
import type { Finding } from '../../contract/resources/rollout.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { planRollback, type RollbackPlan } from '../../models/config/rollback.ts';
import { lockHead, writeRevision } from '../../models/config/write-revision.ts';
import { noteEvent } from '../../models/rollouts/cluster-canary.ts';
import { endWatch } from '../../models/rollouts/vital-watch.ts';
import { readTrouble } from '../../models/rollouts/vitals.ts';
import { UNDO_SECONDS } from '../../models/rollouts/watch-change.ts';
import {
  entriesOf,
  isWatched,
  undoneSites,
  type WatchedPublication,
  watchedPublications,
} from '../../models/rollouts/watched-change.ts';
import { systemCall } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { type Tx, write } from '../../runtime/write.ts';
import { withSiteName } from './evaluate.ts';
import { finding as findingOf } from './finding.ts';
import { judgeChange } from './judge-change.ts';

/** Sites of which changes are taken back within {@link SPAN_MS}. */
const MAX_SITES = 3;
const SPAN_MS = 5 * 60_000;
/** What was reported while a change was published counts for it, too. */
const LATE_SECONDS = 30;

/** Looks at what was published lately, and takes back what does harm. */
export async function undoHarm(runtime: Runtime, signal: AbortSignal): Promise<void> {
  const changes = await watchedPublications(runtime.pools.api);
  if (changes.length === 0) return;
  const trouble = await readTrouble(runtime.pools.api, UNDO_SECONDS + LATE_SECONDS);
  for (const change of changes) {
    if (signal.aborted) return;
    if (!trouble.has(change.clusterId, change.sites)) continue;
    try {
      const { clusterId, revision, since, policy } = change;
      const direct = { clusterId, revision, kind: 'direct', since, policy } as const;
      const { finding } = await judgeChange(runtime.pools.api, direct, new Date());
      if (finding) await undo(runtime, change, finding);
    } catch (err) {
      const { clusterId, revision } = change;
      runtime.log.warn({ err, clusterId, revision }, 'publication not evaluated');
    }
  }
}

async function undo(runtime: Runtime, change: WatchedPublication, found: Finding): Promise<void> {
  const { clusterId, clusterName, revision } = change;
  await write(runtime, systemCall('rollouts'), { clusterId }, async (tx) => {
    const { revision: head, canary } = await lockHead(tx, clusterId, []);
    if (canary || !(await isWatched(tx.sql, clusterId, revision))) return;
    await endWatch(tx.sql, clusterId, revision);
    const finding = await withSiteName(tx, found);
    const target = { type: 'cluster', id: clusterId, name: clusterName };
    const stop = async (message: string) => {
      const stopped = findingOf({ ...finding, message });
      await noteEvent(tx, clusterId, { kind: 'undo_stopped', revision, finding: stopped, sites: change.sites });
      await recordAudit(tx, 'cluster.undo_stopped', target, { revision, finding: stopped });
    };
    const since = new Date(tx.now.getTime() - SPAN_MS);
    const sites = new Set([...(await undoneSites(tx.sql, clusterId, since)), ...sitesOf(change)]);
    if (sites.size > MAX_SITES) {
      return stop(
        `changes of more than ${MAX_SITES} sites failed within five minutes, so the cause is not a single change`,
      );
    }
    const plan = await planOf(tx, change, head);
    if (typeof plan === 'string') return stop(plan);
    if (plan.differences.length === 0) return;
    const locked = await lockHead(tx, clusterId, plan.differences);
    const params = { revision };
    const audit = { action: 'cluster.change_undone', target, metadata: { revision, finding } };
    const note = { clusterId, reason: 'change_undone', params, source: 'rollback', audit } as const;
    const number = await writeRevision(tx, note, locked, plan.differences);
    await noteEvent(tx, clusterId, { kind: 'undone', revision: number, finding, sites: sitesOf(change) });
  });
}

/** What concerns more than its sites counts as one. */
function sitesOf({ sites }: WatchedPublication): string[] {
  const named = sites.filter((id) => id !== '');
  return named.length > 0 ? named : [''];
}

/** What is put back, or why it cannot be. */
async function planOf(
  tx: Tx,
  { clusterId, revision }: WatchedPublication,
  head: string,
): Promise<RollbackPlan | string> {
  const only = await entriesOf(tx.sql, clusterId, revision);
  const before = (BigInt(revision) - 1n).toString();
  try {
    return await planRollback(tx.sql, clusterId, { revision: before, head }, { only });
  } catch (error) {
    const code = errorCodeOf(error);
    if (code === undefined || code === 'SERVICE_UNAVAILABLE') throw error;
    return `the previous version cannot be restored: ${code}`;
  }
}
