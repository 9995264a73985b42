// Looks at the canaries that run: what becomes of each follows from its nodes, from how its changes fare, and from the time.
//
// | what is seen                                             | what becomes of it                           |
// | a node is offline, or its data plane is not healthy       | ended: unhealthy                             |
// | a node cannot apply something of the candidate            | ended: apply_failed                          |
// | visitors of its nodes suffer (judge.ts)                   | ended: error_ratio, apply_failed, unhealthy  |
// | the window is over, all nodes run the candidate           | promoted, or waits for somebody              |
// | the window is over twice, a node does not run it          | ended: apply_timeout                         |
import type { Finding } from '../../contract/resources/rollout.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { lockHead } from '../../models/config/write-revision.ts';
import { noteWaiting, type RolloutOutcome } from '../../models/rollouts/cluster-canary.ts';
import { abortCanary, promoteCanary, promoteNext } from '../../models/rollouts/finish-canary.ts';
import { readRollout } from '../../models/rollouts/rollout.ts';
import { type Member, membersOf, type RunningCanary, runningCanaries } from '../../models/rollouts/running-canary.ts';
import { siteLabels } from '../../models/sites/site.ts';
import { systemCall } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { type Tx, write } from '../../runtime/write.ts';
import { finding } from './finding.ts';
import type { Judgement } from './judge.ts';
import { judgeChange } from './judge-change.ts';

/** What is done about a canary now. */
export type Decision =
  | { end: RolloutOutcome; finding: Finding }
  | { promote: 'auto_promote' }
  | { wait: true }
  | undefined;

/** Looks at each canary; `aheadMs`: so much later than it is. */
export async function evaluateCanaries(runtime: Runtime, signal: AbortSignal, aheadMs = 0): Promise<void> {
  for (const canary of await runningCanaries(runtime.pools.api)) {
    if (signal.aborted) return;
    try {
      if (canary.promoting) {
        await finishPromotion(runtime, canary.clusterId, signal);
        continue;
      }
      const now = new Date(canary.readAt.getTime() + aheadMs);
      const decision = await decide(runtime, canary, now);
      if (decision) await act(runtime, canary, decision);
    } catch (err) {
      runtime.log.warn({ err, clusterId: canary.clusterId }, 'canary not evaluated');
    }
  }
}

/** Each piece in a transaction of its own: other publications of the cluster come between them. */
async function finishPromotion(runtime: Runtime, clusterId: string, signal: AbortSignal): Promise<void> {
  const next = () => write(runtime, systemCall('rollouts'), { clusterId }, (tx) => promoteNext(tx, clusterId));
  while (!signal.aborted && (await next()));
}

async function decide(runtime: Runtime, canary: RunningCanary, now: Date): Promise<Decision> {
  const members = await membersOf(runtime.pools.api, canary.clusterId, now);
  const judged = await judgeCandidate(runtime, canary, now);
  return decisionOn(canary, members, judged, now);
}

/** Pure: what becomes of a canary. */
export function decisionOn(
  { state, policy, windowEndsAt }: Pick<RunningCanary, 'state' | 'policy' | 'windowEndsAt'>,
  all: readonly Member[],
  judged: Pick<Judgement, 'finding'>,
  now: Date,
): Decision {
  const members = all.filter(({ disabled }) => !disabled);
  const of = (reason: Finding['reason'], found: readonly Member[], message: string | null = null) =>
    finding({ reason, nodeIds: found.map(({ id }) => id), message });
  const failing = members.filter(({ failure }) => failure !== '');
  if (failing.length > 0) return { end: 'apply_failed', finding: of('apply_failed', failing, failing[0]!.failure) };
  if (judged.finding) return { end: outcomeOf(judged.finding), finding: judged.finding };
  const away = members.filter(({ online }) => !online);
  if (away.length > 0) return { end: 'unhealthy', finding: of('offline', away) };
  const sick = members.filter(({ healthy }) => !healthy);
  if (sick.length > 0) return { end: 'unhealthy', finding: of('unhealthy', sick) };
  if (members.length === 0) return { end: 'unhealthy', finding: of('offline', [], 'no node takes part any more') };
  if (now < windowEndsAt) return undefined;
  const late = members.filter(({ applied }) => !applied);
  if (late.length === 0) {
    if (policy.autoPromote) return { promote: 'auto_promote' };
    return state === 'canary' ? { wait: true } : undefined;
  }
  const deadline = windowEndsAt.getTime() + policy.windowSeconds * 1000;
  // While it waits for somebody nothing runs out.
  if (now.getTime() < deadline || state === 'awaiting_promotion') return undefined;
  return { end: 'apply_timeout', finding: of('apply_timeout', late) };
}

function outcomeOf({ reason }: Finding): RolloutOutcome {
  return reason === 'apply_failed' || reason === 'unhealthy' ? reason : 'error_ratio';
}

function judgeCandidate({ pools }: Runtime, canary: RunningCanary, now: Date): Promise<Judgement> {
  const { clusterId, policy, stableRevision, windowStartedAt: since } = canary;
  const revision = BigInt(stableRevision) + 1n;
  return judgeChange(pools.api, { clusterId, revision, kind: 'canary', since, policy }, now);
}

async function act(
  runtime: Runtime,
  { clusterId, candidateRevision }: RunningCanary,
  decision: Decision,
): Promise<void> {
  const call = systemCall('rollouts');
  await write(runtime, call, { clusterId }, async (tx) => {
    await lockHead(tx, clusterId, []);
    const now = await readRollout(tx.sql, clusterId);
    // Somebody was faster, or another candidate is tried: it is looked at again.
    if (now?.candidateRevision !== candidateRevision) return;
    const target = { type: 'cluster', id: clusterId, name: now.clusterName };
    if ('wait' in decision!) {
      await noteWaiting(tx, clusterId);
    } else if ('promote' in decision!) {
      await promoteCanary(tx, clusterId, decision.promote);
      await recordAudit(tx, 'cluster.rollout_promote', target, { candidateRevision, outcome: decision.promote });
    } else {
      const named = await withSiteName(tx, decision!.finding);
      await abortCanary(tx, clusterId, decision!.end, named);
      const metadata = { candidateRevision, outcome: decision!.end, finding: named };
      await recordAudit(tx, 'cluster.rollout_rollback', target, metadata);
    }
  });
}

/** The finding with the name of its site as of now. */
export async function withSiteName(tx: Tx, found: Finding): Promise<Finding> {
  if (found.siteId === null) return found;
  const [site] = await siteLabels(tx.sql, [found.siteId]);
  return { ...found, siteName: site?.name ?? null };
}
