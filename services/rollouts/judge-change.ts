// Reads how a change fares and judges it: since it began, and lately, so that what begins late is not lost in what was good.
import { Recent } from '../../models/db/recent.ts';
import { type Figures, readBefore, readVitals, type VitalsOf } from '../../models/rollouts/vitals.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { type Case, type Judgement, judge } from './judge.ts';

/** Nodes without a canary hear with a heartbeat that it is watched, and report what comes after. */
const SETTLED_MS = 25_000;
const LATELY_MS = 30_000;
/** What was before changes only while nodes still report the minutes of it. */
const BEFORE_MS = 10_000;

export interface ChangeToJudge extends Omit<VitalsOf, 'canary'> {
  kind: Case['kind'];
  policy: Case['policy'];
}

/** By change, whose names are unique. */
const known = new Recent<Map<string, Figures>>(BEFORE_MS);

/** `now`: the time that the change's beginning is measured by. */
export async function judgeChange(
  sql: Runtime['pools']['api'],
  { kind, policy, ...change }: ChangeToJudge,
  now: Date,
): Promise<Judgement> {
  const canary = kind === 'canary';
  const age = now.getTime() - change.since.getTime();
  const judgeSince = async (since: Date): Promise<Judgement> => {
    const { concernsAll, sites } = await readVitals(sql, { ...change, canary, since });
    const ids = sites.map(({ siteId }) => siteId);
    const before = await beforeOf(sql, change, ids);
    const judged = sites.map((site) => ({ ...site, before: before.get(site.siteId) }));
    return judge({ policy, kind, concernsAll, settled: age >= SETTLED_MS, sites: judged });
  };
  const all = await judgeSince(change.since);
  if (all.verdict === 'bad' || age <= LATELY_MS) return all;
  const lately = await judgeSince(new Date(now.getTime() - LATELY_MS));
  return lately.verdict === 'bad' ? lately : all;
}

function beforeOf(
  sql: Runtime['pools']['api'],
  { clusterId, since }: Pick<ChangeToJudge, 'clusterId' | 'since'>,
  siteIds: string[],
): Promise<Map<string, Figures>> {
  const key = [clusterId, since.getTime(), ...siteIds].join();
  return known.get(() => readBefore(sql, clusterId, since, siteIds), key);
}
