// Whether a change did visitors harm, from how its sites fare on nodes with the change, on nodes without at the same time,
// and before it. Pure: what is done about it is decided elsewhere.
//
// | What is seen                                            | counts                                                     |
// | errors that edges make themselves                       | always                                                     |
// | errors of origins, and edges that cannot reach them     | when the change touched origins or routing of the site     |
// | bans, challenges and other answers below 500            | never; they are not among the requests either              |
// | nodes without the change suffer as well                 | only what is far beyond that: the change is not the cause  |
// | entries that members of a canary cannot apply           | at once                                                    |
// | data planes that were started again                     | one member of a canary; two and a tenth of all, otherwise  |
// | origins, before nodes without a canary can have reported | not yet: their trouble may be everybody's                  |
//
// A share of errors is too high when it is beyond max(baseline x multiplier, floor) of at least minRequests requests. The
// baseline is that of nodes without the change, and without enough of it that of before. Where neither is known, the floor
// alone decides, but for origins of a change that went to all nodes at once: nothing says that it was better before.
import type { Finding, RolloutPolicy } from '../../contract/resources/rollout.ts';
import type { Figures, NodeFigures, SiteVitals } from '../../models/rollouts/vitals.ts';
import { finding } from './finding.ts';

/** Requests that are enough to take a change back that makes edges fail on all nodes: each second of it counts. */
const DIRECT_MIN_REQUESTS = 20;
/** Errors that there must be of them. */
const DIRECT_MIN_ERRORS = 10;
/** Requests from which on a share is compared with. */
const BASELINE_MIN_REQUESTS = 20;
/** How much more of the requests must fail than on nodes that lack the change and suffer as well. */
const SHARED_MARGIN = 0.5;
/** A code that makes up this much of what edges answered is named alone. */
const DOMINANT = 0.8;
const DIRECT_MIN_RESTARTS = 2;
const DIRECT_RESTARTED_SHARE = 0.1;

/** Answers of edges that say that the origin is the trouble. */
const ORIGIN_CODES: ReadonlySet<string> = new Set([
  'no-origin',
  'origin-error',
  'origin-timeout',
  'origin-unreachable',
]);

export type Verdict = 'ok' | 'no_evidence' | 'bad';

export interface JudgedSite extends SiteVitals {
  /** Undefined: not known. */
  before?: Figures | undefined;
}

export interface Case {
  policy: Pick<RolloutPolicy, 'errorRatioMultiplier' | 'errorRatioFloor' | 'minRequests'>;
  kind: 'canary' | 'direct';
  /** Whether the change concerns more than the sites named: else, of one to all nodes, those alone are judged. */
  concernsAll: boolean;
  /** Whether nodes that lack the change have had the time to report. */
  settled: boolean;
  /** With '' for the traffic of the nodes as a whole. */
  sites: readonly JudgedSite[];
}

export interface Judgement {
  verdict: Verdict;
  /** What is wrong; null unless the verdict is bad. Names of sites and nodes are for the caller to add. */
  finding: Finding | null;
  /** By site, '' for the whole. */
  sites: { siteId: string; verdict: Verdict }[];
}

/** Errors of one kind on one side. */
interface Share {
  errors: number;
  requests: number;
}

/** Judges a change; the worst of what is found is the finding. */
export function judge(change: Case): Judgement {
  const whole = change.sites.find(({ siteId }) => siteId === '');
  const found = whole ? judgeNodes(change, whole) : null;
  const judged = change.sites
    .filter(({ siteId }) => siteId !== '' || change.concernsAll || change.kind === 'canary')
    .map((site) => ({ siteId: site.siteId, ...judgeSite(change, site) }));
  const sites = judged.map(({ siteId, verdict }) => ({ siteId, verdict }));
  const worst = found ?? judged.reduce<Finding | null>(worse, null);
  if (worst) return { verdict: 'bad', finding: worst, sites };
  // Where sites are named, what the others had says nothing about them.
  const named = sites.filter(({ siteId }) => siteId !== '');
  const asked = change.concernsAll || named.length === 0 ? sites : named;
  const verdict = asked.some((site) => site.verdict === 'ok') ? 'ok' : 'no_evidence';
  return { verdict, finding: null, sites };
}

/** That of more errors; of a site rather than of the whole, which says less. */
function worse(most: Finding | null, { finding }: { finding: Finding | null }): Finding | null {
  if (!most || !finding) return most ?? finding;
  if ((most.siteId === null) !== (finding.siteId === null)) return most.siteId === null ? finding : most;
  const errors = ({ now, requests }: Finding) => (now ?? 0) * (requests ?? 0);
  return errors(finding) > errors(most) ? finding : most;
}

function judgeNodes({ kind }: Case, { changed, lacking }: JudgedSite): Finding | null {
  if (kind === 'canary' && changed.failed > 0) {
    return finding({
      reason: 'apply_failed',
      message: `${count(changed.failed, 'entry', 'entries')} could not be applied`,
    });
  }
  if (!diedOfIt(kind, changed, lacking)) return null;
  const message = `${count(changed.restarts, 'data plane', 'data planes')} restarted`;
  return finding({ reason: 'unhealthy', message });
}

function diedOfIt(kind: Case['kind'], changed: Figures & NodeFigures, lacking: Figures & NodeFigures): boolean {
  const least = kind === 'canary' ? 1 : Math.max(DIRECT_MIN_RESTARTS, changed.nodes * DIRECT_RESTARTED_SHARE);
  if (changed.restarts < least) return false;
  // Others that lack the change die as often.
  const share = ({ restarts, nodes }: Figures & NodeFigures) => restarts / Math.max(1, nodes);
  return share(changed) > 2 * share(lacking);
}

function judgeSite(change: Case, site: JudgedSite): { verdict: Verdict; finding: Finding | null } {
  const { policy, kind } = change;
  const own = compare(change, site, ownErrors);
  const ownMinimum = kind === 'direct' ? Math.min(policy.minRequests, DIRECT_MIN_REQUESTS) : policy.minRequests;
  const ownErrorsEnough = kind === 'canary' || own.now.errors >= Math.min(policy.minRequests, DIRECT_MIN_ERRORS);
  if (own.now.requests >= ownMinimum && ownErrorsEnough && own.tooHigh) {
    return bad(site, own, 'edge_errors', edgeFigure(site.changed, isOwn));
  }
  if (own.now.requests < policy.minRequests) return { verdict: 'no_evidence', finding: null };
  if (!site.origins) return { verdict: 'ok', finding: null };
  const all = compare(change, site, allErrors);
  if (!all.tooHigh) return { verdict: 'ok', finding: null };
  const unknown =
    kind === 'direct' ? all.baseline === null && all.before === null : !change.settled && all.baseline === null;
  if (unknown) return { verdict: 'no_evidence', finding: null };
  const byOrigins = site.changed.origin5xx >= all.now.errors / 2;
  return bad(site, all, 'error_ratio', byOrigins ? 'origin_5xx' : edgeFigure(site.changed, () => true));
}

interface Comparison {
  now: Share;
  /** Null: too few requests to say. */
  baseline: number | null;
  before: number | null;
  tooHigh: boolean;
}

function compare({ policy }: Case, site: JudgedSite, errorsOf: (figures: Figures) => number): Comparison {
  const { errorRatioMultiplier: multiplier, errorRatioFloor: floor, minRequests } = policy;
  const enough = Math.min(minRequests, BASELINE_MIN_REQUESTS);
  const shareOf = (figures: Figures | undefined): number | null =>
    figures && figures.requests >= enough ? ratioOf({ errors: errorsOf(figures), requests: figures.requests }) : null;
  const now = { errors: errorsOf(site.changed), requests: site.changed.requests };
  const ratio = ratioOf(now);
  const baseline = shareOf(site.lacking);
  const before = shareOf(site.before);
  // Of nodes that lacked the change for a moment, until it reached them, little is known.
  const expected = site.lacking.requests >= minRequests ? baseline : (before ?? baseline);
  const limit = Math.max((expected ?? 0) * multiplier, floor);
  // What nodes with and without the change see of the same trouble differs while it begins and ends.
  const suffering = baseline !== null && baseline > Math.max((before ?? 0) * multiplier, floor);
  const margin = suffering ? (baseline ?? 0) + SHARED_MARGIN : 0;
  return { now, baseline, before, tooHigh: ratio > limit && ratio > margin };
}

function ratioOf({ errors, requests }: Share): number {
  return requests > 0 ? Math.min(1, errors / requests) : 0;
}

function ownErrors({ edgeCodes }: Figures): number {
  return sumOf(edgeCodes, isOwn);
}

function isOwn(code: string): boolean {
  return !ORIGIN_CODES.has(code);
}

function allErrors({ origin5xx, edgeCodes }: Figures): number {
  return origin5xx + sumOf(edgeCodes, () => true);
}

function sumOf(codes: Readonly<Record<string, number>>, counts: (code: string) => boolean): number {
  return Object.entries(codes).reduce((sum, [code, count]) => sum + (counts(code) ? count : 0), 0);
}

/** The code that most of the edge's errors have, if one has. */
function edgeFigure({ edgeCodes }: Figures, counts: (code: string) => boolean): string {
  const codes = Object.entries(edgeCodes).filter(([code]) => counts(code));
  const total = codes.reduce((sum, [, count]) => sum + count, 0);
  const [code, count] = codes.reduce((most, one) => (one[1] > most[1] ? one : most), ['', 0]);
  return count > 0 && count >= total * DOMINANT ? `edge_${code}` : 'edge_5xx';
}

function bad(
  { siteId }: JudgedSite,
  { now, baseline, before }: Comparison,
  reason: Finding['reason'],
  figure: string,
): { verdict: Verdict; finding: Finding } {
  const { requests } = now;
  const moved = { figure, before, baseline, now: ratioOf(now), requests };
  return { verdict: 'bad', finding: finding({ reason, siteId: siteId === '' ? null : siteId, ...moved }) };
}

function count(number: number, one: string, many: string): string {
  return `${number} ${number === 1 ? one : many}`;
}
