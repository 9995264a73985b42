// The specification's table "Configuration revisions published": each operation gives exactly its reason code, on the
// clusters it concerns, and exactly its audit action; and no other operation gives them.
import test from 'ava';
import { PROCEDURES } from '../../contract/index.ts';
import { KeyKeeper } from '../../pipeline/key-keeper.ts';
import { CHALLENGES } from '../../services/protection/challenge-keys.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { Api, type Body } from '../helpers/resources.ts';

let running: TestConsole;
let api: Api;
/** Has a site that follows the CC template. */
let followed: string;
/** Has a site that does not. */
let other: string;
let sites: { followed: string; other: string };

test.before(async () => {
  running = await startTestConsole();
  api = new Api(running);
  const { items } = await api.ok('GET', '/clusters');
  // Only the two: "all clusters" is both.
  for (const { id } of items) await api.ok('DELETE', `/clusters/${id}`);
  followed = await api.cluster('followed');
  other = await api.cluster('other');
  sites = {
    followed: (await api.site(followed, 'followed.example')).id,
    other: (await api.site(other, 'other.example')).id,
  };
  await api.ok('PATCH', `/sites/${sites.followed}/protection`, { cc: { enabled: true, followTemplate: true } });
});

test.after.always(() => running?.stop());

/** Clusters that get a revision: of the site or cluster alone, all, those with sites that follow the template, none. */
type Where = 'own' | 'all' | 'followers' | 'none';

interface Row {
  operation: string;
  reason: string | null;
  where: Where;
  audit: string | null;
  /** The procedure that writes the audit entry. */
  procedure?: string;
  /** Does it, on `other` where it concerns one cluster. Absent: not built yet. */
  run?: () => Promise<unknown>;
}

const site = (change: string) => `/sites/${sites.other}${change}`;
const enable = (enabled: boolean) => () => api.ok('PUT', site('/enabled'), { enabled });
const RULE = { name: 'Log', phase: 'waf-custom', expression: 'true', enabled: true, action: { kind: 'log' } };
const BAN = { scope: 'platform', cidr: '203.0.113.200', reason: 'abuse', durationSeconds: 600 };
let banId: string;

/** Rotates the keys of `other` alone. */
async function rotateKeys(): Promise<void> {
  let now = Date.now() + 25 * 3_600_000;
  let monotonic = 0;
  await api
    .sql('challenge_key_set')
    .where({ cluster_id: followed })
    .update({ rotated_at: new Date(now) });
  const keeper = new KeyKeeper(CHALLENGES, { now: () => new Date(now), monotonic: () => monotonic });
  for (let round = 0; round < 2; round++) {
    await keeper.run(running.running.runtime, new AbortController().signal);
    now += 61_000;
    monotonic += 61_000;
  }
}

const TABLE: readonly Row[] = [
  {
    operation: 'PATCH site protection',
    reason: 'site_protection_updated',
    where: 'own',
    audit: 'site.protection_update',
    procedure: 'protection.update',
    run: () => api.ok('PATCH', site('/protection'), { underAttack: true }),
  },
  {
    operation: 'global protection change',
    reason: 'platform_protection_updated',
    where: 'all',
    audit: 'system.protection_update',
    procedure: 'settings.protection.set',
    run: () => api.ok('PUT', '/settings/protection', { underAttack: true }),
  },
  {
    operation: 'CC template change',
    reason: 'cc_template_updated',
    where: 'followers',
    audit: 'system.cc_template_update',
    procedure: 'settings.ccTemplate.set',
    run: async () => api.ok('PUT', '/settings/cc-template', { siteQps: 4321 }),
  },
  {
    operation: 'daily challenge key rotation',
    reason: 'challenge_keys_rotated',
    where: 'own',
    audit: null,
    run: rotateKeys,
  },
  {
    operation: 'site disable',
    reason: 'site_disabled',
    where: 'own',
    audit: 'site.disable',
    procedure: 'sites.setEnabled',
    run: enable(false),
  },
  {
    operation: 'site enable',
    reason: 'site_enabled',
    where: 'own',
    audit: 'site.enable',
    procedure: 'sites.setEnabled',
    run: enable(true),
  },
  {
    operation: 'https update, certificate binding',
    reason: 'certificate_updated',
    where: 'own',
    audit: 'site.https_update',
    procedure: 'sites.https.set',
    run: () => api.ok('PUT', site('/https'), { settings: { zstd: true } }),
  },
  {
    operation: 'session ticket keys',
    reason: null,
    where: 'none',
    audit: 'cluster.session_ticket_keys_rotate',
    procedure: 'clusters.sessionTicketKeys.rotate',
    run: () => api.ok('POST', `/clusters/${other}/session-ticket-keys/rotate`, {}),
  },
  {
    operation: 'ports of a cluster',
    reason: 'listen_ports_updated',
    where: 'own',
    audit: 'cluster.listen_ports_update',
    procedure: 'clusters.listenPorts.set',
    run: () => api.ok('PUT', `/clusters/${other}/listen-ports`, { httpPorts: [8080], httpsPorts: [] }),
  },
  {
    operation: 'WAF update',
    reason: 'site_waf_updated',
    where: 'own',
    audit: 'site.waf_update',
    procedure: 'sites.waf.update',
    run: () => api.ok('PATCH', site('/waf'), { mode: 'detect' }),
  },
  {
    operation: 'error pages of a site',
    reason: 'site_error_pages_updated',
    where: 'own',
    audit: 'site.error_pages_update',
    procedure: 'sites.errorPages.update',
    run: () => api.ok('PUT', site('/error-pages'), { pages: [{ status: 404, template: 'Gone' }] }),
  },
  {
    operation: 'error pages of the platform',
    reason: 'error_pages_updated',
    where: 'all',
    audit: 'system.error_pages_update',
    procedure: 'settings.errorPages.set',
    run: () => api.ok('PUT', '/settings/error-pages', { unknownHost: 'Who?' }),
  },
  {
    operation: 'cluster cache',
    reason: 'cluster_cache_updated',
    where: 'own',
    audit: 'cluster.cache_update',
    procedure: 'clusters.cache.set',
    run: () => api.ok('PUT', `/clusters/${other}/cache`, { maxSizeGb: 20, inactiveDays: 3 }),
  },
  {
    operation: 'node cache',
    reason: 'node_cache_updated',
    where: 'own',
    audit: 'node.cache_update',
    procedure: 'nodes.cache.set',
    run: async () => api.ok('PUT', `/nodes/${await api.node(other, 'large')}/cache`, { maxSizeGb: 40 }),
  },
  {
    operation: 'maintenance',
    reason: 'site_maintenance_updated',
    where: 'own',
    audit: 'site.maintenance_update',
    procedure: 'sites.maintenance.update',
    run: () => api.ok('PUT', site('/maintenance'), { enabled: true }),
  },
  {
    operation: 'log settings',
    reason: 'site_logs_updated',
    where: 'own',
    audit: 'site.logs_configure',
    procedure: 'sites.logs.settings.set',
    run: () => api.ok('PUT', site('/logs/settings'), { sampleRate: 100 }),
  },
  {
    operation: 'site rules',
    reason: 'rules_updated',
    where: 'own',
    audit: 'site.rules_update',
    procedure: 'sites.rules.set',
    run: () => api.ok('PUT', site('/rules'), { rules: [RULE] }),
  },
  {
    operation: 'bulk redirects',
    reason: 'rules_updated',
    where: 'own',
    audit: 'site.bulk_redirects_update',
    procedure: 'sites.bulkRedirects.set',
    run: () => api.ok('PUT', site('/bulk-redirects'), { redirects: [{ source: '/old', target: '/new' }] }),
  },
  {
    operation: 'platform rules',
    reason: 'rules_updated',
    where: 'all',
    audit: 'platform.rules_update',
    procedure: 'platformRules.set',
    run: () => api.ok('PUT', '/platform-rules', { rules: [RULE] }),
  },
  { operation: 'L4 app create', reason: 'l4_app_created', where: 'own', audit: 'l4_app.create' },
  { operation: 'L4 app update', reason: 'l4_app_updated', where: 'own', audit: 'l4_app.update' },
  { operation: 'L4 app enable', reason: 'l4_app_updated', where: 'own', audit: 'l4_app.enable' },
  { operation: 'L4 app disable', reason: 'l4_app_updated', where: 'own', audit: 'l4_app.disable' },
  { operation: 'L4 app delete', reason: 'l4_app_deleted', where: 'own', audit: 'l4_app.delete' },
  { operation: 'node addresses', reason: null, where: 'none', audit: 'node.set_addresses' },
  {
    operation: 'ban create',
    reason: null,
    where: 'none',
    audit: 'ban.create',
    procedure: 'bans.create',
    run: async () => {
      banId = (await api.ok('POST', '/bans', BAN)).id;
    },
  },
  {
    operation: 'ban renew',
    reason: null,
    where: 'none',
    audit: 'ban.update',
    run: () => api.ok('POST', '/bans', { ...BAN, durationSeconds: 1200 }),
  },
  {
    operation: 'ban delete',
    reason: null,
    where: 'none',
    audit: 'ban.delete',
    procedure: 'bans.delete',
    run: () => api.ok('DELETE', `/bans/${banId}`),
  },
  {
    operation: 'ban settings',
    reason: null,
    where: 'none',
    audit: 'system.bans_update',
    procedure: 'settings.bans.set',
    run: () => api.ok('PUT', '/settings/bans', { maxTotal: 4321 }),
  },
  {
    operation: 'node channel URL',
    reason: null,
    where: 'none',
    audit: 'system.node_channel_update',
    procedure: 'settings.nodeChannel.set',
    run: () => api.ok('PUT', '/settings/node-channel', { url: 'https://channel.example:8443' }),
  },
];

interface Outcome {
  revisions: string[];
  audit: string[];
}

/** What an operation left: revisions as `<cluster>: <reason>`, and audit actions. */
async function outcomeOf(run: () => Promise<unknown>): Promise<Outcome> {
  const revisions = async (): Promise<Map<string, string>> => {
    const rows: Body[] = await api.sql('config_revision').whereIn('cluster_id', [followed, other]);
    return new Map(rows.map((row) => [`${row.cluster_id} ${row.number}`, `${names[row.cluster_id]}: ${row.reason}`]));
  };
  const names: Record<string, string> = { [followed]: 'followed', [other]: 'other' };
  const had = await revisions();
  const latest = await api.sql('audit_entry').max('id as id').first();
  await run();
  const made = [...(await revisions())].filter(([number]) => !had.has(number));
  const entries: Body[] = await api.sql('audit_entry').where('id', '>', latest!.id).orderBy('id');
  return { revisions: made.map(([, text]) => text).sort(), audit: entries.map(({ action }) => action) };
}

const CLUSTERS: Readonly<Record<Where, readonly string[]>> = {
  own: ['other'],
  all: ['followed', 'other'],
  followers: ['followed'],
  none: [],
};

for (const { operation, reason, where, audit, run } of TABLE) {
  if (!run) continue;
  test.serial(
    `${operation} publishes ${reason ?? 'no revision'} and is audited as ${audit ?? 'nothing'}`,
    async (t) => {
      t.deepEqual(await outcomeOf(run), {
        revisions: CLUSTERS[where].map((cluster) => `${cluster}: ${reason}`),
        audit: audit === null ? [] : [audit],
      });
    },
  );
}

// What is built and stands in no row: it must not give a reason or action of the table.
const OTHERS: readonly { operation: string; run: () => Promise<unknown>; outcome: Outcome }[] = [
  {
    operation: 'site update',
    run: () => api.ok('PATCH', site(''), { name: 'Renamed', domains: ['renamed.example'] }),
    outcome: { revisions: ['other: site_updated'], audit: ['site.update'] },
  },
  {
    operation: 'site create',
    run: () => api.site(other, 'new.example'),
    outcome: { revisions: ['other: site_created'], audit: ['site.create'] },
  },
  {
    operation: 'site delete',
    run: async () => api.ok('DELETE', `/sites/${(await api.ok('GET', '/sites?search=new.example')).items[0].id}`),
    outcome: { revisions: ['other: site_deleted'], audit: ['site.delete'] },
  },
  {
    operation: 'client address',
    run: () => api.ok('PUT', `/clusters/${other}/client-ip`, { settings: { mode: 'proxy_protocol' } }),
    outcome: { revisions: ['other: client_ip_updated'], audit: ['cluster.client_ip_update'] },
  },
  {
    operation: 'origin allow list',
    run: () => api.ok('PUT', '/settings/origin-allow-list', { cidrs: ['10.0.0.0/8'] }),
    outcome: {
      revisions: ['followed: origin_allow_list_updated', 'other: origin_allow_list_updated'],
      audit: ['system.origin_allow_list_update'],
    },
  },
  {
    operation: 'rollback',
    run: () => api.ok('POST', `/clusters/${other}/rollback`, { revision: '1' }),
    outcome: { revisions: ['other: rollback'], audit: ['cluster.rollback'] },
  },
  {
    operation: 'cluster update',
    run: () => api.ok('PATCH', `/clusters/${other}`, { description: 'x' }),
    outcome: { revisions: [], audit: ['cluster.update'] },
  },
];

for (const { operation, run, outcome } of OTHERS) {
  test.serial(`${operation} gives no reason or action of the table`, async (t) => {
    t.deepEqual(await outcomeOf(run), outcome);
    const reasons = new Set(TABLE.map(({ reason }) => reason));
    const actions = new Set(TABLE.map(({ audit }) => audit));
    for (const revision of outcome.revisions) t.false(reasons.has(revision.split(': ')[1]!));
    for (const action of outcome.audit) t.false(actions.has(action));
  });
}

test('each audit action of the table belongs to one procedure, the one of its row', (t) => {
  for (const { operation, audit, procedure, run } of TABLE) {
    const declaring = [...PROCEDURES.values()].filter(({ audit: declared }) =>
      [declared].flat().includes(audit as never),
    );
    const names = audit === null ? [] : declaring.map(({ name }) => name);
    if (!run) t.deepEqual(names, [], `${operation} is built: let the table do it`);
    for (const name of names) t.is(name, procedure ?? name, operation);
    t.true(names.length <= 1, operation);
  }
});

test.serial('what changes nothing publishes nothing and is not audited', async (t) => {
  const { underAttack } = await api.ok('GET', site('/protection'));
  const nothing = { revisions: [], audit: [] };
  t.deepEqual(await outcomeOf(() => api.ok('PATCH', site('/protection'), { underAttack })), nothing);
  t.deepEqual(await outcomeOf(enable(true)), nothing);
  const bans = await api.ok('GET', '/settings/bans');
  t.deepEqual(await outcomeOf(() => api.ok('PUT', '/settings/bans', { maxTotal: bans.maxTotal })), nothing);
});
