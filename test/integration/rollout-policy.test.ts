// How changes of a cluster are tried out: what can be set, and what is answered of a canary that runs, ran or never was
// (reference: RC§4.6). What canaries do is said elsewhere.
import test from 'ava';
import { ROLLOUT_OUTCOMES } from '../../contract/resources/rollout.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { Overview } from '../helpers/overview.ts';
import { Api, type Body } from '../helpers/resources.ts';

let running: TestConsole;
let api: Api;
let clusterId: string;
let path: string;

test.before('start', async () => {
  running = await startTestConsole();
  api = new Api(running);
  clusterId = await api.cluster('tried');
  path = `/clusters/${clusterId}/rollout-policy`;
});
test.after.always('stop', () => running?.stop());

const DEFAULTS = {
  enabled: false,
  windowSeconds: 300,
  autoPromote: true,
  errorRatioMultiplier: 2,
  errorRatioFloor: 0.05,
  minRequests: 100,
  undoDirect: true,
};
const set = (given: Body) => api.ok('PUT', path, given);
const rollout = (id = clusterId): Promise<Body> => api.ok('GET', `/clusters/${id}/rollout`);
const audited = async () =>
  (await api.audit(clusterId)).filter(({ action }) => action === 'cluster.rollout_policy_update');

// Policy ----------------------------------------------------------------------------------------------------------------

test.serial('a cluster that never tried anything has the defaults, is idle and has no history', async (t) => {
  const { updatedAt, ...policy } = await api.ok('GET', path);
  t.deepEqual(policy, DEFAULTS);
  // A new cluster publishes what its other settings bring, in the background.
  const { now, stableRevision } = await eventually(async () => {
    const before = (await api.ok('GET', `/clusters/${clusterId}`)).latestRevision;
    const now = await rollout();
    const after = (await api.ok('GET', `/clusters/${clusterId}`)).latestRevision;
    return before === after && { now, stableRevision: after };
  });
  t.deepEqual(now, {
    clusterId,
    policy: DEFAULTS,
    state: 'idle',
    stableRevision,
    candidateRevision: null,
    lastCandidateRevision: null,
    windowStartedAt: null,
    windowEndsAt: null,
    outcome: null,
    finding: null,
    finishedAt: null,
    canaryNodes: [],
    window: null,
    candidateChanges: null,
    policyUpdatedAt: updatedAt,
    updatedAt,
  });
  t.deepEqual(await api.ok('GET', `/clusters/${clusterId}/rollout-events`), { items: [], total: 0 });
});

test.serial('each field is saved within its bounds, and what is left out stays', async (t) => {
  const values = {
    enabled: [true],
    windowSeconds: [60, 3600],
    autoPromote: [false],
    errorRatioMultiplier: [1, 100, 2.5],
    errorRatioFloor: [0.001, 1],
    minRequests: [1, 1_000_000],
    undoDirect: [false],
  };
  let expected: Body = DEFAULTS;
  for (const [field, allowed] of Object.entries(values)) {
    for (const value of allowed) {
      expected = { ...expected, [field]: value };
      t.like(await set({ [field]: value }), expected);
    }
  }
  t.like(await api.ok('GET', path), expected);
  t.deepEqual((await rollout()).policy, expected);
  t.deepEqual(await rollout().then(({ state }) => state), 'idle');
  await set(DEFAULTS);
});

test.serial('values beyond the bounds are refused by field, and nothing is saved', async (t) => {
  const before = await api.ok('GET', path);
  const refused: readonly [field: string, values: unknown[]][] = [
    ['enabled', ['yes', null]],
    ['windowSeconds', [59, 3601, 60.5, null]],
    ['autoPromote', [1]],
    ['errorRatioMultiplier', [0.99, 100.01, '2']],
    ['errorRatioFloor', [0, 0.0009, 1.01]],
    ['minRequests', [0, 1_000_001, 1.5]],
    ['undoDirect', ['no']],
    ['other', [1]],
  ];
  for (const [field, values] of refused)
    for (const value of values) await api.badField(t, `/${field}`, 'PUT', path, { [field]: value });
  t.deepEqual(await api.ok('GET', path), before);
});

test.serial('a change is audited with the fields that it changed, no change is not', async (t) => {
  const before = (await audited()).length;
  await set({ windowSeconds: 600, minRequests: 100 });
  const unchanged = await set({ windowSeconds: 600 });
  t.is(unchanged.updatedAt, (await api.ok('GET', path)).updatedAt);
  t.deepEqual(
    (await audited()).slice(before).map(({ metadata }) => metadata),
    [{ before: { windowSeconds: 300 }, after: { windowSeconds: 600 } }],
  );
  await set({ windowSeconds: 300 });
});

test.serial('expectedUpdatedAt is compared with policyUpdatedAt, which publications do not move', async (t) => {
  const { updatedAt: seen } = await set({ minRequests: 200 });
  t.is((await rollout()).policyUpdatedAt, seen);
  await api.site(clusterId, 'published.example');
  const { updatedAt } = await api.ok('PUT', path, { minRequests: 100, expectedUpdatedAt: seen });
  t.true(Date.parse(updatedAt) > Date.parse(seen));
  const body = { minRequests: 300, expectedUpdatedAt: seen };
  t.like(await api.refused(t, [409, 'UPDATED_AT_MISMATCH'], 'PUT', path, body), { updatedAt });
  t.is((await api.ok('GET', path)).minRequests, 100);
});

test.serial('the policy publishes no revision', async (t) => {
  const before = await api.reasons(clusterId);
  await set({ enabled: true });
  await set({ enabled: false });
  t.deepEqual(await api.reasons(clusterId), before);
});

test.serial('node groups tell whether being a canary does anything', async (t) => {
  const { id } = await api.ok('POST', '/node-groups', { clusterId, name: 'first', isCanary: true });
  const group = async () =>
    (await api.ok('GET', `/node-groups?clusterId=${clusterId}`)).items.find((one: Body) => one.id === id);
  t.like(await group(), { isCanary: true, canaryInEffect: false });
  await set({ enabled: true });
  t.like(await group(), { isCanary: true, canaryInEffect: true });
  await set({ enabled: false });
  await api.ok('DELETE', `/node-groups/${id}`);
});

test.serial('there is no rollout without a cluster', async (t) => {
  const missing: readonly [number, string] = [404, 'CLUSTER_NOT_FOUND'];
  for (const part of ['rollout', 'rollout-policy', 'rollout-events', 'rollout-events/x'])
    await api.refused(t, [...missing], 'GET', `/clusters/nobody/${part}`);
  await api.refused(t, [...missing], 'PUT', '/clusters/nobody/rollout-policy', { enabled: true });
  for (const end of ['promote', 'abort'])
    await api.refused(t, [...missing], 'POST', `/clusters/nobody/rollout/${end}`, {});
  await api.refused(t, [404, 'ROLLOUT_EVENT_NOT_FOUND'], 'GET', `/clusters/${clusterId}/rollout-events/nothing`);
});

test.serial('where no canary runs there is nothing to promote or abort, and nothing is audited', async (t) => {
  const before = (await api.audit(clusterId)).length;
  for (const end of ['promote', 'abort']) {
    await api.refused(t, [409, 'ROLLOUT_NOT_ACTIVE'], 'POST', `/clusters/${clusterId}/rollout/${end}`, {});
  }
  t.is((await api.audit(clusterId)).length, before);
});

test.serial('a read-only key may look and no more, a service account may do neither', async (t) => {
  const { secret: reading } = await running.client.rpc<Body>('accessKeys.create', { name: 'reads', scope: 'read' });
  const account = await api.ok('POST', '/service-accounts', { name: 'all', scopes: ['clusters:read', 'sites:write'] });
  const { secret: robot } = await api.ok('POST', `/service-accounts/${account.id}/keys`, {});
  const answer = async (key: string, method: string, to: string) => {
    const { status, body } = await api.call(method, `/clusters/${clusterId}/${to}`, method === 'GET' ? undefined : {}, {
      'x-api-key': key,
    });
    return status === 200 ? 200 : body.code;
  };
  for (const to of ['rollout', 'rollout-policy', 'rollout-events']) {
    t.is(await answer(reading, 'GET', to), 200);
    t.is(await answer(robot, 'GET', to), 'SERVICE_ACCOUNT_FORBIDDEN');
  }
  for (const [method, to] of [
    ['PUT', 'rollout-policy'],
    ['POST', 'rollout/promote'],
    ['POST', 'rollout/abort'],
  ] as const) {
    t.is(await answer(reading, method, to), 'ACCESS_KEY_READ_ONLY');
    t.is(await answer(robot, method, to), 'SERVICE_ACCOUNT_FORBIDDEN');
  }
});

// A canary as rows: what is answered of it --------------------------------------------------------------------------------

const MINUTE = 60_000;
const ACTOR = { type: 'system', id: null, name: 'rollouts' };
const store = (id: string, row: Body) =>
  api
    .sql('cluster_rollout')
    .insert({ cluster_id: id, ...row })
    .onConflict('cluster_id')
    .merge();

test.serial('nodes of canary groups are listed with what they run, and who takes part', async (t) => {
  const id = await api.cluster('canary-nodes');
  const group = await api.ok('POST', '/node-groups', { clusterId: id, name: 'canary', isCanary: true });
  const moved = async (name: string, more: Body = {}) => {
    const node = await api.node(id, name, more);
    await api.sql('node').where({ id: node }).update({ node_group_id: group.id });
    return node;
  };
  const member = await moved('a-member', { features: ['canary-v1'] });
  const waiting = await moved('b-waiting', { online: false });
  await moved('c-disabled', { status: 'disabled' });
  const former = await api.node(id, 'd-former');
  await api.node(id, 'e-other');
  const { epoch } = await api.sql('cluster_head').where({ cluster_id: id }).first('epoch');
  await api.sql('node_state').where({ node_id: member }).update({ epoch, revision: 1 });
  await api
    .sql('node_state')
    .where({ node_id: former })
    .update({ failed: JSON.stringify([{ kind: 'site', id: 'x' }]) });
  for (const node_id of [member, former]) await api.sql('rollout_member').insert({ cluster_id: id, node_id });
  t.deepEqual((await rollout(id)).canaryNodes, [
    {
      id: member,
      name: 'a-member',
      online: true,
      healthy: true,
      able: true,
      appliedRevision: '1',
      participating: true,
    },
    {
      id: former,
      name: 'd-former',
      online: true,
      healthy: false,
      able: false,
      appliedRevision: null,
      participating: true,
    },
    {
      id: waiting,
      name: 'b-waiting',
      online: false,
      healthy: true,
      able: false,
      appliedRevision: null,
      participating: false,
    },
  ]);
});

test.serial('while a canary runs, its changes are told by site, and why they were made', async (t) => {
  const id = await api.cluster('candidate');
  const [kept, changed, removed] = [
    await api.site(id, 'kept.example'),
    await api.site(id, 'changed.example'),
    await api.site(id, 'removed.example'),
  ];
  const stable = (await api.ok('GET', `/clusters/${id}`)).latestRevision;
  await api.ok('PATCH', `/sites/${kept.id}`, { name: 'Kept' });
  await api.ok('PATCH', `/sites/${kept.id}`, { name: 'Kept so' });
  const newest = (await api.ok('GET', `/clusters/${id}`)).latestRevision;
  const row = (site: string, kind = 'site') =>
    api.sql('config_entry').where({ cluster_id: id, track: 'S', kind, resource_id: site, to_revision: null }).first();
  const overlay = (base: Body, more: Body = {}) =>
    api.sql('config_entry').insert({ ...base, track: 'C', from_revision: newest, ...more });
  await overlay(await row(changed.id));
  await overlay(await row(changed.id), { kind: 'protection' });
  await overlay(await row(removed.id), { blob_hash: null, owner: null });
  await overlay(await row(changed.id), { resource_id: 'new', owner: 'site:new' });
  await api.sql('site_label').insert({ site_id: 'new', name: 'new.example' });
  t.is((await rollout(id)).candidateChanges, null);
  const startedAt = new Date(Date.now() - MINUTE);
  await store(id, {
    enabled: true,
    state: 'canary',
    stable_revision: stable,
    candidate_revision: newest,
    last_candidate_revision: newest,
    window_started_at: startedAt,
    window_ends_at: new Date(startedAt.getTime() + 5 * MINUTE),
  });
  const answer = await rollout(id);
  t.like(answer, {
    state: 'canary',
    stableRevision: newest,
    candidateRevision: newest,
    windowStartedAt: startedAt.toISOString(),
    outcome: null,
  });
  t.deepEqual(answer.candidateChanges, {
    sites: {
      added: [{ id: 'new', name: 'new.example' }],
      changed: [{ id: changed.id, name: changed.name }],
      removed: [{ id: removed.id, name: removed.name }],
    },
    siteCounts: { added: 1, changed: 1, removed: 1 },
    reasons: ['site_updated'],
  });
  const overview = new Overview(api);
  t.like(await overview.shown('canary_running'), { level: 'watch', clusterId: id, revision: newest });
  await store(id, { state: 'awaiting_promotion' });
  t.like(await overview.shown('canary_awaiting_promotion'), { level: 'watch', clusterId: id, revision: newest });
  const finished_at = new Date(Date.now() - 23 * 60 * MINUTE);
  await store(id, { state: 'rolled_back', candidate_revision: null, outcome: 'error_ratio', finished_at });
  t.like(await overview.shown('canary_rolled_back'), { level: 'act', at: finished_at.toISOString(), clusterId: id });
  await store(id, { finished_at: new Date(Date.now() - 25 * 60 * MINUTE) });
  await overview.gone('canary_rolled_back');
});

test.serial('what was found wrong is answered with everything that is known of it', async (t) => {
  const id = await api.cluster('found');
  const finding = {
    reason: 'error_ratio',
    siteId: 's',
    siteName: 's.example',
    figure: 'origin_5xx',
    before: 0.001,
    now: 1,
  };
  for (const outcome of ROLLOUT_OUTCOMES) {
    await store(id, { state: 'rolled_back', outcome, finding: JSON.stringify(finding), finished_at: new Date() });
    t.is((await rollout(id)).outcome, outcome);
  }
  t.deepEqual((await rollout(id)).finding, { ...finding, nodeIds: [], baseline: null, requests: null, message: null });
});

test.serial('events are listed newest first, and one names its nodes and the changes that it ended', async (t) => {
  const id = await api.cluster('history');
  const node = await api.node(id, 'first');
  const site = await api.site(id, 'tried.example');
  const number = async () => (await api.ok('GET', `/clusters/${id}`)).latestRevision;
  const began = await number();
  await api.ok('PATCH', `/sites/${site.id}`, { name: 'Tried' });
  const last = await number();
  const ended = String(BigInt(last) + 1n);
  const at = (minutes: number) => new Date(Date.now() - minutes * MINUTE);
  const finding = { reason: 'apply_failed', nodeIds: [node, 'gone'], message: 'no' };
  await api.sql('rollout_event').insert([
    { id: 'e1', cluster_id: id, at: at(9), kind: 'started', revision: began, actor: ACTOR },
    {
      id: 'e2',
      cluster_id: id,
      at: at(8),
      kind: 'rolled_back',
      revision: ended,
      outcome: 'apply_failed',
      finding: JSON.stringify(finding),
      actor: ACTOR,
    },
  ]);
  const events = `/clusters/${id}/rollout-events`;
  const { items, total } = await api.ok('GET', events);
  t.is(total, 2);
  t.deepEqual(
    items.map((one: Body) => [one.id, one.kind, one.revision, one.outcome]),
    [
      ['e2', 'rolled_back', ended, 'apply_failed'],
      ['e1', 'started', began, null],
    ],
  );
  t.like((await api.ok('GET', `${events}?page=2&pageSize=1`)).items, [{ id: 'e1' }]);
  const event = await api.ok('GET', `${events}/e2`);
  t.like(event, { clusterName: 'history', actor: ACTOR, finding: { reason: 'apply_failed', message: 'no' } });
  t.deepEqual(event.nodes, [
    { id: node, name: 'first' },
    { id: 'gone', name: null },
  ]);
  t.deepEqual(
    event.changes.map(({ revision, reasonCode, subject }: Body) => [revision, reasonCode, subject.id]),
    [
      [last, 'site_updated', site.id],
      [began, 'site_created', site.id],
    ],
  );
  t.deepEqual(
    (await api.ok('GET', `${events}/e1`)).changes.map(({ revision }: Body) => revision),
    [began],
  );
});

// A canary that runs -------------------------------------------------------------------------------------------------------

/** A cluster with one node that tries changes, and a site. */
async function trying(name: string): Promise<{ id: string; node: string; site: string }> {
  const id = await api.cluster(name);
  const { id: siteId } = await api.site(id, `${name}.example`);
  const group = await api.ok('POST', '/node-groups', { clusterId: id, name: 'canary', isCanary: true });
  const node = await api.node(id, 'tries', { features: ['canary-v1'] });
  await api.sql('node').where({ id: node }).update({ node_group_id: group.id });
  // It stays online, however long the test takes.
  const tomorrow = new Date(Date.now() + 86_400_000);
  await api.sql('node_state').where({ node_id: node }).update({ last_seen_at: tomorrow });
  await api.ok('PUT', `/clusters/${id}/rollout-policy`, { enabled: true, windowSeconds: 3600, autoPromote: false });
  return { id, node, site: siteId };
}
/** The names that a revision gave to sites, as its difference tells. */
const renamed = async (id: string, revision: string) =>
  (await api.ok('GET', `/clusters/${id}/revisions/${revision}/diff`)).items.flatMap(({ subject, fields }: Body) =>
    fields.filter(({ path }: Body) => path === 'name').map(({ from, to }: Body) => [subject.id, from, to]),
  );
const lastAudit = async (id: string) => (await api.audit(id)).at(-1)!;

test.serial('what is tried is promoted by hand, once, and audited', async (t) => {
  const { id, node, site } = await trying('promotes');
  const stable = (await rollout(id)).stableRevision;
  await api.ok('PATCH', `/sites/${site}`, { name: 'Tried' });
  const tried = await rollout(id);
  const candidate = String(BigInt(stable) + 1n);
  t.like(tried, { state: 'canary', stableRevision: stable, candidateRevision: candidate, outcome: null, window: null });
  t.like(tried.canaryNodes, [{ id: node, participating: true }]);
  t.deepEqual(tried.candidateChanges, {
    sites: { added: [], changed: [{ id: site, name: 'Tried' }], removed: [] },
    siteCounts: { added: 0, changed: 1, removed: 0 },
    reasons: ['site_updated'],
  });
  t.is(Date.parse(tried.windowEndsAt) - Date.parse(tried.windowStartedAt), 3_600_000);

  const path = `/clusters/${id}/rollout/promote`;
  const promoted = await api.ok('POST', path, {});
  t.like(promoted, {
    state: 'promoted',
    outcome: 'manual_promote',
    stableRevision: String(BigInt(candidate) + 1n),
    candidateRevision: null,
    lastCandidateRevision: candidate,
    candidateChanges: null,
  });
  t.like(await lastAudit(id), { action: 'cluster.rollout_promote', metadata: { candidateRevision: candidate } });
  await api.refused(t, [409, 'ROLLOUT_NOT_ACTIVE'], 'POST', path, {});
  const { items } = await api.ok('GET', `/clusters/${id}/rollout-events`);
  t.deepEqual(
    items.map(({ kind, revision }: Body) => [kind, revision]),
    [
      ['promoted', promoted.stableRevision],
      ['started', candidate],
    ],
  );
  const { changes, actor } = await api.ok('GET', `/clusters/${id}/rollout-events/${items[0].id}`);
  t.is(actor.type, 'api_key');
  t.deepEqual(
    changes.map(({ revision, subject }: Body) => [revision, subject.id]),
    [[candidate, site]],
  );
  const difference = [[site, 'promotes.example', 'Tried']];
  t.deepEqual(await renamed(id, candidate), difference, 'for the nodes of the canary');
  t.deepEqual(await renamed(id, promoted.stableRevision), difference, 'for everybody');
});

test.serial('what is tried is aborted by hand, and nodes outside of the canary never had it', async (t) => {
  const { id, site } = await trying('aborts');
  await api.ok('PATCH', `/sites/${site}`, { name: 'Tried' });
  const { candidateRevision } = await rollout(id);
  const aborted = await api.ok('POST', `/clusters/${id}/rollout/abort`, {});
  t.like(aborted, { state: 'rolled_back', outcome: 'manual_abort', finding: null, candidateRevision: null });
  t.like(await lastAudit(id), { action: 'cluster.rollout_abort', metadata: { candidateRevision } });
  t.is((await api.reasons(id)).at(-1), 'rollout_rollback');
  t.deepEqual(await renamed(id, candidateRevision), [[site, 'aborts.example', 'Tried']]);
  const ended = String(BigInt(candidateRevision) + 1n);
  t.deepEqual(await renamed(id, ended), [[site, 'Tried', 'aborts.example']], 'for the nodes of the canary');
  await api.refused(t, [409, 'ROLLOUT_NOT_ACTIVE'], 'POST', `/clusters/${id}/rollout/abort`, {});
});

test.serial('turned off while something is tried, everybody gets it in the same change', async (t) => {
  const { id, site } = await trying('ends');
  await api.ok('PATCH', `/sites/${site}`, { name: 'Tried' });
  const path = `/clusters/${id}/rollout-policy`;
  await api.ok('PUT', path, { windowSeconds: 60 });
  t.is((await rollout(id)).state, 'canary');
  const { updatedAt } = await api.ok('GET', path);
  await api.ok('PUT', path, { enabled: false, expectedUpdatedAt: updatedAt });
  t.like(await rollout(id), { state: 'promoted', outcome: 'policy_disabled', candidateRevision: null });
  t.is((await api.reasons(id)).at(-1), 'rollout_promoted');
});

test.serial('what nodes counted since it began is answered, those with it beside all others', async (t) => {
  const { id, site } = await trying('counts');
  await api.ok('PATCH', `/sites/${site}`, { name: 'Tried' });
  t.is((await rollout(id)).window, null);
  const slot = Math.floor(Date.now() / 5_000) * 5_000 - MINUTE;
  await store(id, { window_started_at: new Date(slot) });
  const counted = (track: string, more: Body = {}) => ({
    cluster_id: id,
    slot: new Date(slot),
    site_id: '',
    track,
    revision: 1,
    writer: 'a',
    nodes: 1,
    requests: 10,
    origin_5xx: 2,
    edge_5xx: 1,
    edge_codes: '{}',
    restarts: 0,
    failed: 0,
    ...more,
  });
  await api
    .sql('vital')
    .insert([
      counted('C'),
      counted('C', { slot: new Date(slot + 5_000), requests: 5 }),
      counted('C', { site_id: site }),
      counted('S', { requests: 100, origin_5xx: 0, edge_5xx: 0 }),
      counted('S', { writer: 'b', requests: 200 }),
      counted('S', { slot: new Date(slot - 5_000), requests: 1000 }),
    ]);
  t.deepEqual((await rollout(id)).window, {
    canaryRequests: 15,
    canary5xx: 6,
    baselineRequests: 300,
    baseline5xx: 3,
  });
});

test.serial('a change that was undone is named with its sites, and needs somebody for a day', async (t) => {
  const id = await api.cluster('undoes');
  const site = await api.site(id, 'undoes.example');
  await api.ok('PATCH', `/sites/${site.id}`, { name: 'Harmful' });
  const { latestRevision: harmful } = await api.ok('GET', `/clusters/${id}`);
  await api.ok('PATCH', `/sites/${site.id}`, { name: 'Undone' });
  const { latestRevision: revision } = await api.ok('GET', `/clusters/${id}`);
  // As the console leaves it.
  await api
    .sql('config_revision')
    .where({ cluster_id: id, number: revision })
    .update({ reason: 'change_undone', params: JSON.stringify({ revision: harmful }) });
  const at = new Date();
  const event = { id: 'undone', cluster_id: id, at, kind: 'undone', revision, sites: [site.id], actor: ACTOR };
  await api.sql('rollout_event').insert(event);
  const answer = await api.ok('GET', `/clusters/${id}/rollout-events/undone`);
  t.deepEqual(answer.sites, [{ id: site.id, name: 'Undone' }]);
  t.like(answer.changes, [{ revision: harmful, reasonCode: 'site_updated' }]);
  t.is(answer.changes.length, 1);
  const overview = new Overview(api);
  t.like(await overview.shown('changes_undone'), { level: 'act', clusterId: id, count: 1, at: at.toISOString() });
  await api
    .sql('rollout_event')
    .where({ id: 'undone' })
    .update({ at: new Date(Date.now() - 25 * 60 * MINUTE) });
  await overview.gone('changes_undone');
});
