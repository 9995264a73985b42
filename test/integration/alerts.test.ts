// Alerts: one open row for each kind and subject while its cause lasts, for causes as the console's own queries find them.
import test from 'ava';
import type { AttentionKind } from '../../contract/resources/overview.ts';
import type { AttentionSource } from '../../mixins/attention.ts';
import type { ServiceFeature } from '../../mixins/service-feature.ts';
import { MAX_SUBJECTS } from '../../models/alerts/alert.ts';
import { purgeAlerts } from '../../models/db/sweeps.ts';
import { writeRuleSet } from '../../models/rules/rule-set.ts';
import { sitesWithErrors } from '../../models/sites/alerting-site.ts';
import { makeUsagePartitions } from '../../models/usage/usage-partitions.ts';
import { FEATURES } from '../../services/gen/features.ts';
import { reviewAlerts } from '../../services/housekeeping/review-alerts.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { QueryPlans } from '../helpers/query-plans.ts';
import { Api, type Body } from '../helpers/resources.ts';
import { testCertificate } from '../helpers/site-certificates.ts';
import { withoutJobs } from '../helpers/without-jobs.ts';

const SOURCES = FEATURES.flatMap(({ attention }: ServiceFeature) => attention ?? []);
const ALERT_SOURCES = FEATURES.flatMap(({ alerts }: ServiceFeature) => alerts ?? []);
const COLUMNS = ['site_id', 'node_id', 'cluster_id', 'certificate_id', 'upgrade_id'] as const;

let running: TestConsole;
let api: Api;
let clusterId: string;

test.before('start', async () => {
  running = await startTestConsole({ env: withoutJobs() });
  api = new Api(running);
  clusterId = await api.cluster('alerting');
});
test.after.always('stop', () => running?.stop());

const review = (sources: readonly AttentionSource[] = SOURCES) =>
  reviewAlerts(running.running.runtime, { attention: sources, alerts: ALERT_SOURCES }, new Date());

/** `column=id` of the alerts of a kind in the order of their beginning, with a mark for open ones. */
async function alerts(kind: string): Promise<string[]> {
  const rows: Body[] = await api
    .sql('alert')
    .where({ kind })
    .orderBy(['started_at', ...COLUMNS]);
  return rows.map((row) => {
    const column = COLUMNS.find((name) => row[name] !== null);
    return `${column === undefined ? 'installation' : `${column}=${row[column]}`}${row.resolved_at ? '' : ' open'}`;
  });
}

interface Cause {
  /** Makes the cause; returns the subject. */
  begin(): Promise<string>;
  end(): Promise<unknown>;
}

/** Online for as long as the test takes. */
const online = () => ({ last_seen_at: new Date(Date.now() + 3_600_000) });
let siteId: string;
let nodeId: string;

const causes: Readonly<Record<string, Cause>> = {
  clusters_no_nodes: {
    begin: async () => {
      siteId = (await api.site(clusterId, 'alerting.example')).id;
      return `cluster_id=${clusterId}`;
    },
    end: async () => {
      nodeId = await api.node(clusterId, 'first');
      await api.sql('node_state').where({ node_id: nodeId }).update(online());
    },
  },
  nodes_unhealthy: {
    begin: async () => {
      await api
        .sql('node_state')
        .where({ node_id: nodeId })
        .update({ last_seen_at: new Date(Date.now() - 60_000) });
      return `node_id=${nodeId}`;
    },
    end: () => api.sql('node_state').where({ node_id: nodeId }).update(online()),
  },
  under_attack_on: {
    begin: async () => {
      await api.ok('PUT', '/settings/protection', { underAttack: true });
      return 'installation';
    },
    end: () => api.ok('PUT', '/settings/protection', { underAttack: false }),
  },
  sites_under_attack: {
    begin: async () => {
      await api.ok('PATCH', `/sites/${siteId}/protection`, { underAttack: true });
      return `site_id=${siteId}`;
    },
    end: () => api.ok('PATCH', `/sites/${siteId}/protection`, { underAttack: false }),
  },
  site_rules_invalid: {
    begin: async () => {
      const rules = { rules: [], updatedAt: new Date() };
      await writeRuleSet(api.sql, { id: siteId, clusterId }, rules, { entry: null, broken: ['rule'] }, []);
      return `site_id=${siteId}`;
    },
    end: () => api.sql('rule_set').where({ id: siteId }).update({ broken: [] }),
  },
  certificates_ending: {
    begin: async () => {
      const { chainPem, privateKeyPem } = await testCertificate(['alerting.example']);
      const { id } = await api.ok('POST', '/certificates/upload', { name: 'Ending', chainPem, privateKeyPem });
      const features = ['https-v1', 'site-content-v1'];
      await api.sql('node_state').where({ node_id: nodeId }).update({ features });
      await api.ok('PUT', `/sites/${siteId}/https`, { settings: { certificateId: id } });
      await api
        .sql('certificate')
        .where({ id })
        .update({ not_after: new Date(Date.now() + 86_400_000) });
      return `certificate_id=${id}`;
    },
    end: () => api.sql('certificate').update({ not_after: new Date(Date.now() + 60 * 86_400_000) }),
  },
  certificate_expiring: {
    begin: async () => {
      await api.sql('certificate').update({ not_after: new Date(Date.now() + 71 * 3_600_000) });
      return `site_id=${siteId}`;
    },
    end: () => api.sql('certificate').update({ not_after: new Date(Date.now() + 73 * 3_600_000) }),
  },
  certificate_failed: {
    begin: async () => {
      const { id } = await api.sql('certificate').first('id');
      await api.sql('certificate').update({ status: 'error', last_error: 'dns_unreachable' });
      return `certificate_id=${id}`;
    },
    end: () => api.sql('certificate').update({ status: 'ready', last_error: null }),
  },
  node_offline: {
    begin: async () => {
      await api.sql('node_state').where({ node_id: nodeId }).update({ data_plane_healthy: false });
      return `node_id=${nodeId}`;
    },
    end: () => api.sql('node_state').where({ node_id: nodeId }).update({ data_plane_healthy: true }),
  },
  origin_unavailable: {
    begin: async () => {
      const down = { sites: { [siteId]: [{ originId: 'only', healthy: false, sinceMs: 1 }] }, cut: false };
      await api.sql('node_state').where({ node_id: nodeId }).update({ origin_health: down });
      return `site_id=${siteId}`;
    },
    end: () =>
      api
        .sql('node_state')
        .where({ node_id: nodeId })
        .update({ origin_health: { sites: {}, cut: false } }),
  },
  high_5xx: {
    begin: async () => {
      await makeUsagePartitions(api.sql, new Date());
      await api.sql.raw(
        `insert into usage_minute (minute, site_id, cluster_id, requests, bytes_sent, bytes_received, failed)
         select date_trunc('minute', now()) - interval '3 minutes', ?, ?, r, 0, 0, f
           from (values (99, 19), (1, 1)) as v(r, f)`,
        [siteId, clusterId],
      );
      return `site_id=${siteId}`;
    },
    end: () => api.sql('usage_minute').delete(),
  },
  stored_rule_invalid: {
    begin: async () => {
      const rules = { rules: [], updatedAt: new Date() };
      await writeRuleSet(api.sql, { id: siteId, clusterId }, rules, { entry: null, broken: ['rule'] }, []);
      return `site_id=${siteId}`;
    },
    end: () => api.sql('rule_set').where({ id: siteId }).update({ broken: [] }),
  },
  backup_late: {
    begin: async () => {
      const value = { enabled: true, enabledAt: new Date(Date.now() - 27 * 3_600_000).toISOString() };
      await api.sql('setting').insert({ key: 'backups', value, updated_at: new Date() });
      return 'installation';
    },
    end: () =>
      api.sql('backup').insert({
        cause: 'schedule',
        state: 'done',
        folder: '/backups',
        file_name: 'new',
        started_at: new Date(),
        ended_at: new Date(),
      }),
  },
  config_rollout_failed: {
    begin: async () => {
      await api.sql('cluster_rollout').where({ cluster_id: clusterId }).update({ enabled: true });
      await rolloutEvent('rolled_back');
      return `cluster_id=${clusterId}`;
    },
    end: () => rolloutEvent('promoted'),
  },
  config_rollout_no_canary: {
    begin: async () => {
      await rolloutEvent('direct');
      return `cluster_id=${clusterId}`;
    },
    end: () => rolloutEvent('started'),
  },
};

async function rolloutEvent(kind: string): Promise<void> {
  const event = { id: `${kind} event`, cluster_id: clusterId, at: new Date(), kind, actor: '{}' };
  await api.sql('rollout_event').insert(event);
}

for (const [kind, { begin, end }] of Object.entries(causes)) {
  test.serial(`${kind}: one open alert while the cause lasts, a new one when it comes back`, async (t) => {
    t.false((await alerts(kind)).some((row) => row.endsWith('open')));
    await api.sql('alert').where({ kind }).delete();
    const subject = await begin();
    // Two processes that both believe to lead, and a review after them.
    await Promise.all([review(), review()]);
    await review();
    t.deepEqual(await alerts(kind), [`${subject} open`]);
    await end();
    await review();
    t.deepEqual(await alerts(kind), [subject]);
    await review();
    t.deepEqual(await alerts(kind), [subject]);
  });
}

test.serial('an alert that was closed opens anew with its cause, and ends with its subject', async (t) => {
  await api.sql('alert').where({ kind: 'nodes_unhealthy' }).delete();
  await causes.nodes_unhealthy!.begin();
  await review();
  await causes.nodes_unhealthy!.end();
  await review();
  await causes.nodes_unhealthy!.begin();
  await review();
  t.deepEqual(await alerts('nodes_unhealthy'), [`node_id=${nodeId}`, `node_id=${nodeId} open`]);
  await api.sql('node').where({ id: nodeId }).delete();
  await review();
  t.deepEqual(await alerts('nodes_unhealthy'), [`node_id=${nodeId}`, `node_id=${nodeId}`]);
});

test.serial('where one source fails, its alerts stay open and all others are reviewed', async (t) => {
  const source = (kind: AttentionKind, find: AttentionSource['find']): AttentionSource => ({
    kinds: { [kind]: { alert: 'installation' } },
    find,
  });
  const [failing, other] = ['under_attack_on', 'publications_waiting'] as const;
  await review([source(failing, async () => [{ kind: failing }]), source(other, async () => [{ kind: other }])]);
  const fails = source(failing, async () => {
    throw new Error('no answer');
  });
  const error = await t.throwsAsync(review([fails, source(other, async () => [])]), { instanceOf: AggregateError });
  t.is(error?.errors.length, 1);
  t.deepEqual(await alerts(other), ['installation']);
  t.is((await alerts(failing)).at(-1), 'installation open');
  await review();
});

test.serial('while a kind concerns more subjects than are read, none of its alerts closes', async (t) => {
  const kind = 'nodes_bans_unapplied';
  const source = (subjects: string[]): AttentionSource[] => [
    { kinds: { [kind]: { alert: 'node' } }, find: async () => [{ kind, subjects }] },
  ];
  const many = Array.from({ length: MAX_SUBJECTS }, (_, n) => `n-${n}`);
  await review(source(['z']));
  await review(source([...many, 'y']));
  const open = async () => (await api.sql('alert').where({ kind, resolved_at: null })).length;
  t.is(await open(), MAX_SUBJECTS + 1);
  await review(source(many));
  t.is(await open(), MAX_SUBJECTS);
  await review();
  t.is(await open(), 0);
});

test.serial(
  'looking for sites with errors reads the rows of those that have some, however many others there are',
  async (t) => {
    await makeUsagePartitions(api.sql, new Date());
    const { id } = await api.site(clusterId, 'errors.example');
    const minute = `date_trunc('minute', now()) - interval '3 minutes'`;
    const columns = 'minute, site_id, cluster_id, requests, bytes_sent, bytes_received, failed';
    await api.sql.raw(`insert into usage_minute (${columns})
    select ${minute}, 'site-' || n % 2000, '${clusterId}', 10, 0, 0, 0 from generate_series(1, 20000) n`);
    await api.sql.raw(
      `insert into usage_minute (${columns}) values (${minute}, ?, '${clusterId}', 60, 0, 0, 40), (${minute}, ?, '${clusterId}', 40, 0, 0, 0)`,
      [id, id],
    );
    await api.sql.raw('analyze usage_minute');
    const plans = new QueryPlans(api, running);
    await plans.connect();
    try {
      let found: unknown;
      const find = async () => {
        found = await sitesWithErrors(api.sql, { minutes: 5, ratio: 0.2, requests: 100 }, 10);
      };
      const read = await plans.rowsRead(find, (sql) => sql.includes('usage_minute'));
      t.deepEqual(found, [{ id, percent: 40 }]);
      t.is(read.length, 1);
      t.true(read[0]! < 100, `${read[0]} rows`);
    } finally {
      await plans.end();
      await api.sql('usage_minute').delete();
    }
  },
);

test.serial('an alert is kept for 90 days after it ended, however long it was open', async (t) => {
  await api.sql('alert').delete();
  const ago = (days: number) => new Date(Date.now() - days * 86_400_000);
  await api.sql('alert').insert(
    [
      { kind: 'old', started_at: ago(200), resolved_at: ago(91) },
      { kind: 'long', started_at: ago(200), resolved_at: ago(1) },
      { kind: 'open', started_at: ago(200), resolved_at: null },
    ].map((row) => ({ ...row, node_id: 'n' })),
  );
  t.is(await purgeAlerts(api.sql), 1);
  t.deepEqual(
    (await api.sql('alert').orderBy('kind')).map(({ kind }: Body) => kind),
    ['long', 'open'],
  );
});
