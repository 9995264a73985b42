import test from 'ava';
import type { Figures, NodeFigures } from '../../../../models/rollouts/vitals.ts';
import { type Case, type JudgedSite, judge, type Verdict } from '../../../../services/rollouts/judge.ts';

const policy = { errorRatioMultiplier: 2, errorRatioFloor: 0.05, minRequests: 100 };

type Sums = Figures & NodeFigures;
const NOTHING: Sums = { nodes: 2, requests: 0, origin5xx: 0, edgeCodes: {}, restarts: 0, failed: 0 };

/** Requests and errors of origins; with a code, of edges. */
const had = (requests: number, errors = 0, code?: string): Sums => ({
  ...NOTHING,
  requests,
  ...(code === undefined ? { origin5xx: errors } : { edgeCodes: { [code]: errors } }),
});

const site = (more: Partial<JudgedSite>): JudgedSite => ({
  siteId: 'shop',
  origins: false,
  changed: NOTHING,
  lacking: NOTHING,
  ...more,
});

/** The change of one site. */
const change = (kind: Case['kind'], more: Partial<JudgedSite>, limits: Partial<Case['policy']> = {}): Case => ({
  policy: { ...policy, ...limits },
  kind,
  concernsAll: false,
  settled: true,
  sites: [site({ siteId: '' }), site(more)],
});

interface Row {
  rule: string;
  kind?: Case['kind'];
  site: Partial<JudgedSite>;
  limits?: Partial<Case['policy']>;
  verdict: Verdict;
  figure?: string;
}

const rows: Row[] = [
  { rule: 'no requests are no evidence', site: {}, verdict: 'no_evidence' },
  {
    rule: 'fewer requests than the minimum are no evidence, whatever became of them',
    site: { changed: had(99, 99, 'internal-error'), lacking: had(1000) },
    verdict: 'no_evidence',
  },
  { rule: 'requests without errors are fine', site: { changed: had(100), lacking: had(1000) }, verdict: 'ok' },
  {
    rule: 'errors that edges make count, whatever the change touched',
    site: { changed: had(1000, 900, 'internal-error'), lacking: had(1000) },
    verdict: 'bad',
    figure: 'edge_internal-error',
  },
  {
    rule: 'errors up to the floor are fine',
    site: { changed: had(1000, 50, 'internal-error'), lacking: had(1000) },
    verdict: 'ok',
  },
  {
    rule: 'errors above the floor are bad',
    site: { changed: had(1000, 51, 'internal-error'), lacking: had(1000) },
    verdict: 'bad',
    figure: 'edge_internal-error',
  },
  {
    rule: 'twice the errors of nodes without the change are fine',
    site: { changed: had(1000, 80, 'internal-error'), lacking: had(1000, 40, 'internal-error') },
    verdict: 'ok',
  },
  {
    rule: 'more than twice the errors of nodes without the change are bad',
    site: { changed: had(1000, 81, 'internal-error'), lacking: had(1000, 40, 'internal-error') },
    verdict: 'bad',
    figure: 'edge_internal-error',
  },
  {
    rule: 'a larger multiplier and floor allow more',
    site: { changed: had(1000, 300, 'internal-error'), lacking: had(1000) },
    limits: { errorRatioFloor: 0.3 },
    verdict: 'ok',
  },
  {
    rule: 'errors of several codes are told together',
    site: {
      changed: { ...had(1000), edgeCodes: { 'internal-error': 300, 'policy-unavailable': 300 } },
      lacking: had(1000),
    },
    verdict: 'bad',
    figure: 'edge_5xx',
  },
  {
    rule: 'errors of origins do not count where the change did not touch them',
    site: { changed: had(1000, 1000), lacking: had(1000) },
    verdict: 'ok',
  },
  {
    rule: 'origins that cannot be reached do not count there either',
    site: { changed: had(1000, 1000, 'origin-unreachable'), lacking: had(1000) },
    verdict: 'ok',
  },
  {
    rule: 'errors of origins count where the change touched them',
    site: { origins: true, changed: had(1000, 400), lacking: had(1000, 10) },
    verdict: 'bad',
    figure: 'origin_5xx',
  },
  {
    rule: 'and so do origins that cannot be reached',
    site: { origins: true, changed: had(1000, 1000, 'origin-timeout'), lacking: had(1000, 10) },
    verdict: 'bad',
    figure: 'edge_origin-timeout',
  },
  {
    rule: 'an outage that nodes without the change see as well is not its fault',
    site: { origins: true, changed: had(1000, 1000), lacking: had(1000, 900), before: had(10_000) },
    verdict: 'ok',
  },
  {
    rule: 'nor is one that they are about to see',
    site: { origins: true, changed: had(1000, 500), lacking: had(1000, 100), before: had(10_000) },
    verdict: 'ok',
  },
  {
    rule: 'a change that breaks everything is found beside the trouble of others',
    site: { origins: true, changed: had(1000, 1000), lacking: had(1000, 100), before: had(10_000) },
    verdict: 'bad',
    figure: 'origin_5xx',
  },
  {
    rule: 'a site that always had many errors may go on so',
    site: { origins: true, changed: had(1000, 450), before: had(10_000, 4000) },
    verdict: 'ok',
  },
  {
    rule: 'without nodes that lack the change, before is what it is compared with',
    site: { changed: had(1000, 60, 'internal-error'), before: had(10_000, 350, 'internal-error') },
    verdict: 'ok',
  },
  {
    rule: 'more than twice the errors of before are bad',
    site: { changed: had(1000, 80, 'internal-error'), before: had(10_000, 350, 'internal-error') },
    verdict: 'bad',
    figure: 'edge_internal-error',
  },
  {
    rule: 'where nothing is known of before, the floor decides about a canary',
    site: { origins: true, changed: had(1000, 60) },
    verdict: 'bad',
    figure: 'origin_5xx',
  },
  {
    rule: 'of a change to all nodes the origins may have been as bad before',
    kind: 'direct',
    site: { origins: true, changed: had(1000, 1000) },
    verdict: 'no_evidence',
  },
  {
    rule: 'and were not, where it is known',
    kind: 'direct',
    site: { origins: true, changed: had(1000, 1000), before: had(100) },
    verdict: 'bad',
    figure: 'origin_5xx',
  },
  {
    rule: 'a change to all nodes that makes edges fail is found in twenty requests',
    kind: 'direct',
    site: { changed: had(20, 10, 'internal-error'), before: had(10_000) },
    verdict: 'bad',
    figure: 'edge_internal-error',
  },
  {
    rule: 'nineteen are too few',
    kind: 'direct',
    site: { changed: had(19, 19, 'internal-error'), before: had(10_000) },
    verdict: 'no_evidence',
  },
  {
    rule: 'nine errors are too few',
    kind: 'direct',
    site: { changed: had(30, 9, 'internal-error'), before: had(10_000) },
    verdict: 'no_evidence',
  },
  {
    rule: 'errors of origins need all of the minimum',
    kind: 'direct',
    site: { origins: true, changed: had(99, 99), before: had(10_000) },
    verdict: 'no_evidence',
  },
  {
    rule: 'nodes that lacked the change for a moment say less than ten minutes before it',
    kind: 'direct',
    site: { origins: true, changed: had(1000, 400), lacking: had(30, 0), before: had(10_000, 3000) },
    verdict: 'ok',
  },
  {
    rule: 'a smaller minimum of the policy holds for changes to all nodes, too',
    kind: 'direct',
    site: { changed: had(5, 5, 'internal-error'), before: had(100) },
    limits: { minRequests: 5 },
    verdict: 'bad',
    figure: 'edge_internal-error',
  },
];

for (const { rule, kind = 'canary', site, limits, verdict, figure } of rows) {
  test(rule, (t) => {
    const judgement = judge(change(kind, site, limits));
    t.is(judgement.verdict, verdict);
    t.is(judgement.finding?.figure ?? undefined, figure);
    t.is(judgement.sites.find(({ siteId }) => siteId === 'shop')?.verdict, verdict);
  });
}

test('a finding says which figure moved from what to what', (t) => {
  const moved = site({ origins: true, changed: had(1000, 400), lacking: had(500, 5), before: had(10_000, 200) });
  t.deepEqual(judge({ ...change('canary', {}), sites: [moved] }).finding, {
    reason: 'error_ratio',
    siteId: 'shop',
    siteName: null,
    nodeIds: [],
    figure: 'origin_5xx',
    before: 0.02,
    baseline: 0.01,
    now: 0.4,
    requests: 1000,
    message: null,
  });
  const own = site({ changed: had(200, 100, 'internal-error') });
  t.like(judge({ ...change('canary', {}), sites: [own] }).finding, {
    reason: 'edge_errors',
    before: null,
    baseline: null,
    now: 0.5,
  });
});

test('of several sites the one with most errors is told, and a site rather than the whole', (t) => {
  const broken = (siteId: string, errors: number) =>
    site({ siteId, changed: had(1000, errors, 'internal-error'), lacking: had(1000) });
  const sites = [broken('', 900), broken('small', 100), broken('large', 800)];
  t.is(judge({ ...change('canary', {}), sites }).finding?.siteId, 'large');
  t.deepEqual(judge({ ...change('canary', {}), sites: [broken('', 900)] }).finding?.siteId, null);
});

test('the whole traffic is judged of canaries, and of changes that concern the whole cluster', (t) => {
  const whole = site({ siteId: '', changed: had(1000, 900, 'internal-error'), before: had(1000) });
  const sites = [whole, site({ changed: had(1000), before: had(1000) })];
  t.is(judge({ ...change('canary', {}), sites }).verdict, 'bad');
  t.is(judge({ ...change('direct', {}), sites, concernsAll: true }).verdict, 'bad');
  t.is(judge({ ...change('direct', {}), sites }).verdict, 'ok', 'another change may have done it');
});

test('trouble of origins waits for the nodes without a canary, and errors that edges make do not', (t) => {
  const early = (more: Partial<JudgedSite>) => judge({ ...change('canary', more), settled: false });
  const failing = { origins: true, changed: had(1000, 1000), before: had(10_000) };
  t.is(early(failing).verdict, 'no_evidence');
  t.is(early({ ...failing, lacking: had(1000) }).verdict, 'bad');
  t.is(early({ changed: had(1000, 1000, 'internal-error') }).verdict, 'bad');
});

test('traffic of others is no evidence about the sites that changed', (t) => {
  const sites = [site({ siteId: '', changed: had(1000), lacking: had(1000) }), site({})];
  t.is(judge({ ...change('canary', {}), sites }).verdict, 'no_evidence');
  t.is(judge({ ...change('canary', {}), sites, concernsAll: true }).verdict, 'ok');
});

const nodes = (kind: Case['kind'], changed: Partial<Sums>, lacking: Partial<Sums> = {}) =>
  judge({
    ...change(kind, {}),
    sites: [site({ siteId: '', changed: { ...NOTHING, ...changed }, lacking: { ...NOTHING, ...lacking } })],
  });

test('entries that a member cannot apply end a canary, and harm nobody elsewhere', (t) => {
  t.like(nodes('canary', { failed: 1 }).finding, { reason: 'apply_failed', message: '1 entry could not be applied' });
  t.is(nodes('direct', { failed: 1 }).verdict, 'no_evidence');
});

test('members whose data plane dies end a canary, unless the others die as often', (t) => {
  t.like(nodes('canary', { restarts: 1 }).finding, { reason: 'unhealthy' });
  t.is(nodes('canary', { restarts: 1 }, { restarts: 1 }).verdict, 'no_evidence');
  t.is(nodes('canary', { restarts: 1 }, { nodes: 100, restarts: 1 }).verdict, 'bad');
});

test('of a change to all nodes two must die, and a tenth of them', (t) => {
  t.is(nodes('direct', { restarts: 1 }).verdict, 'no_evidence');
  t.is(nodes('direct', { restarts: 2 }).verdict, 'bad');
  t.is(nodes('direct', { nodes: 100, restarts: 9 }).verdict, 'no_evidence');
  t.is(nodes('direct', { nodes: 100, restarts: 10 }).verdict, 'bad');
});
