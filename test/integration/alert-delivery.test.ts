// Messages about alerts: who receives which, at least once with a constant id, over real servers.
import { createHmac, randomBytes } from 'node:crypto';
import test from 'ava';
import { type MailServer, startMailServer } from '../../bench/lib/mail-server.ts';
import type { ServiceFeature } from '../../mixins/service-feature.ts';
import { leaseDeliveries } from '../../models/alerts/alert-delivery.ts';
import { deliverAlerts } from '../../services/alerts/deliver.ts';
import { FEATURES } from '../../services/gen/features.ts';
import { reviewAlerts } from '../../services/housekeeping/review-alerts.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { type Hooks, startHooks } from '../helpers/hooks.ts';
import { Api, type Body } from '../helpers/resources.ts';
import { withoutJobs } from '../helpers/without-jobs.ts';

const SOURCES = {
  attention: FEATURES.flatMap(({ attention }: ServiceFeature) => attention ?? []),
  alerts: FEATURES.flatMap(({ alerts }: ServiceFeature) => alerts ?? []),
};
const KEY = `whsec_${randomBytes(32).toString('base64')}`;

let running: TestConsole;
let api: Api;
let hooks: Hooks;
let mail: MailServer;
let clusterId: string;
let siteId: string;
let nodeId: string;
let webhookId: string;

test.before('start', async () => {
  [running, hooks, mail] = await Promise.all([
    startTestConsole({ env: { ...withoutJobs(), SVC_OUTBOUND_ALLOW_CIDRS: '127.0.0.0/8,::1/128' } }),
    startHooks(),
    startMailServer(),
  ]);
  api = new Api(running);
  clusterId = await api.cluster('alerting');
  siteId = (await api.site(clusterId, 'alerting.example')).id;
  nodeId = await api.node(clusterId, 'edge one');
});
test.after.always('stop', () => Promise.all([running?.stop(), hooks?.stop(), mail?.stop()]));
test.beforeEach('forget', async () => {
  // As if the messages of the test before had been sent long ago: many of a short time would be gathered.
  await api.sql.raw(`update alert_delivery set created_at = created_at - interval '1 hour'`);
  Object.assign(hooks, { received: [], status: 200, answer: '{}', before: () => undefined });
});

const seen = (at: Date) => api.sql('node_state').where({ node_id: nodeId }).update({ last_seen_at: at });
const offline = () => seen(new Date(Date.now() - 600_000));
const online = () => seen(new Date(Date.now() + 3_600_000));
const deliver = () => deliverAlerts(running.running.runtime, new AbortController().signal);
const round = async () => {
  await reviewAlerts(running.running.runtime, SOURCES, new Date());
  await deliver();
};
/** As if the waiting time of all messages were over. */
const later = () =>
  api
    .sql('alert_delivery')
    .where({ state: 'waiting' })
    .update({ due_at: new Date(0), leased_until: null });
const deliveries = (where: object = {}) => api.sql('alert_delivery').where(where).orderBy('created_at');
const webhook = (path = '/hook', more: object = {}) => ({ kind: 'webhook', url: `${hooks.url}${path}`, ...more });

test.serial('a channel is created, listed, replaced and deleted; its configuration is never returned', async (t) => {
  const secret = 'a token that nobody sees';
  const created = await api.ok('POST', '/alerts/channels', {
    name: 'Pager',
    platform: true,
    config: webhook('/secret-path', { bearer: 'a-token-that-nobody-sees', signingKey: KEY }),
  });
  webhookId = created.id;
  t.like(created, { name: 'Pager', enabled: true, platform: true, locale: 'en', kind: 'webhook', lastError: null });
  const changed = await api.ok('PUT', `/alerts/channels/${webhookId}`, {
    name: 'Pager',
    platform: true,
    expectedUpdatedAt: created.updatedAt,
  });
  await api.refused(t, [409, 'UPDATED_AT_MISMATCH'], 'PUT', `/alerts/channels/${webhookId}`, {
    name: 'x',
    expectedUpdatedAt: created.updatedAt,
  });
  const said = JSON.stringify([created, changed, await api.ok('GET', '/alerts/channels'), await api.audit(webhookId)]);
  for (const hidden of [secret.replaceAll(' ', '-'), 'secret-path', KEY]) t.false(said.includes(hidden), hidden);
  t.false((await api.sql('alert_channel').first('config')).config.includes('secret-path'));
  t.deepEqual(
    (await api.audit(webhookId)).map(({ action }) => action),
    ['alert.channel_create', 'alert.channel_update'],
  );
  const other = await api.ok('POST', '/alerts/channels', {
    name: 'Other',
    config: { kind: 'email', to: ['a@b.example'] },
  });
  await api.ok('DELETE', `/alerts/channels/${other.id}`);
  for (const [method, path] of [
    ['DELETE', ''],
    ['POST', '/test'],
  ] as const)
    await api.refused(t, [404, 'ALERT_CHANNEL_NOT_FOUND'], method, `/alerts/channels/${other.id}${path}`);
  await api.refused(t, [404, 'ALERT_CHANNEL_NOT_FOUND'], 'PUT', `/alerts/channels/${other.id}`, { name: 'x' });
});

const bad: readonly [what: string, field: string, config: object][] = [
  ['no URL', '/config/url', { kind: 'webhook', url: 'nothing' }],
  ['credentials in the URL', '/config/url', { kind: 'webhook', url: 'https://a:b@hook.example/' }],
  ['another scheme', '/config/url', { kind: 'webhook', url: 'file:///etc/passwd' }],
  [
    'a short key',
    '/config/signingKey',
    { kind: 'webhook', url: 'https://hook.example/', signingKey: `whsec_${'A'.repeat(32)}!` },
  ],
  ['DingTalk elsewhere', '/config/url', { kind: 'dingtalk', url: 'https://oapi.dingtalk.com.example/robot' }],
  ['WeCom without TLS', '/config/url', { kind: 'wecom', url: 'http://qyapi.weixin.qq.com/x' }],
  ['no recipient', '/config/to', { kind: 'email', to: [] }],
  ['a header in an address', '/config/to/0', { kind: 'email', to: ['a@b.example\r\nBcc: c@d.example'] }],
  ['a path in a token', '/config/token', { kind: 'telegram', token: '1:a/../x', chatId: '1' }],
  ['a field of another kind', '/config/bearer', { kind: 'slack', url: 'https://hook.example/', bearer: 'x' }],
];
for (const [what, field, config] of bad)
  test.serial(`a configuration is refused: ${what}`, async (t) => {
    await api.badField(t, field, 'POST', '/alerts/channels', { name: 'Bad', config });
  });

test.serial('a node that goes offline and comes back is told once each, signed, with ids of their own', async (t) => {
  await round();
  await offline();
  await round();
  await round();
  t.is(hooks.received.length, 1);
  const [first] = hooks.received;
  const { headers, text, body, path } = first!;
  t.is(path, '/secret-path');
  t.like(body, { siteId: null, siteName: 'edge one', kind: 'node_offline', status: 'firing', resourceId: nodeId });
  t.is(body.text, 'Node edge one does not respond.');
  t.is(headers['webhook-id'], body.id);
  t.is(headers.authorization, 'Bearer a-token-that-nobody-sees');
  const signed = `${body.id}.${headers['webhook-timestamp']}.${text}`;
  const key = Buffer.from(KEY.slice('whsec_'.length), 'base64');
  t.is(headers['webhook-signature'], `v1,${createHmac('sha256', key).update(signed).digest('base64')}`);
  await online();
  await round();
  t.is(hooks.received.length, 2);
  t.like(hooks.received[1]!.body, { status: 'resolved', resourceId: nodeId, text: 'Node edge one responds again.' });
  t.not(hooks.received[1]!.body.id, body.id);
  const { items } = await api.ok('GET', '/alerts/events');
  t.like(items[0], {
    kind: 'node_offline',
    siteName: 'edge one',
    deliveries: { sent: 2, waiting: 0, failed: 0, dropped: 0 },
  });
});

test.serial('a message is tried five times with the same id, after 2, 4, 8 and 16 minutes', async (t) => {
  hooks.status = 503;
  await offline();
  await round();
  for (const minutes of [2, 4, 8, 16]) {
    const [row] = await deliveries({ state: 'waiting' });
    const waits = (row.due_at.getTime() - Date.now()) / 60_000;
    t.true(waits > minutes - 1 && waits <= minutes, `${waits}`);
    t.is((await api.ok('GET', '/alerts/channels')).items[0].lastError, 'status');
    await later();
    await round();
  }
  t.is(hooks.received.length, 5);
  t.is(new Set(hooks.received.map(({ body }) => body.id)).size, 1);
  await later();
  await round();
  t.is(hooks.received.length, 5);
  t.like((await deliveries({ state: 'failed' }))[0], { attempts: 5, last_error: 'status' });
  // Whoever was not told of the beginning is not told of the end.
  await online();
  await round();
  t.is(hooks.received.length, 5);
});

test.serial('after a sender that died another sends the message again, with the same id', async (t) => {
  await offline();
  await reviewAlerts(running.running.runtime, SOURCES, new Date());
  hooks.before = () => new Promise((never) => setTimeout(never, 5_000));
  const dying = deliver();
  const { runtime } = running.running;
  while (hooks.received.length === 0) await new Promise((next) => setTimeout(next, 10));
  t.deepEqual(await leaseDeliveries(runtime.pools.api, 10), [], 'nobody else takes it meanwhile');
  hooks.before = () => undefined;
  await later();
  await deliver();
  await dying;
  t.is(hooks.received.length, 2);
  t.is(hooks.received[0]!.body.id, hooks.received[1]!.body.id);
  await online();
  await round();
  t.is(hooks.received.length, 3);
});

test.serial('silenced alerts are recorded and not sent; at the end of the silence those still open are', async (t) => {
  const silence = await api.ok('POST', '/alerts/silences', {
    kinds: ['node_offline'],
    resourceId: nodeId,
    reason: 'Maintenance of the rack',
    durationSeconds: 7200,
  });
  t.like(silence, {
    kinds: ['node_offline'],
    resourceId: nodeId,
    resourceName: 'edge one',
    createdBy: 'first key',
  });
  t.is(Date.parse(silence.endsAt) - Date.parse(silence.createdAt), 7_200_000);
  await offline();
  await round();
  await round();
  t.deepEqual(hooks.received, []);
  const newest = async () => (await api.ok('GET', '/alerts/events')).items[0];
  t.like(await newest(), {
    kind: 'node_offline',
    silenced: true,
    resolvedAt: null,
    deliveries: { sent: 0, waiting: 0 },
  });
  t.truthy((await newest()).silencedAt);
  // An alert that ends in its silence is told to nobody.
  await online();
  await round();
  t.like(await newest(), { silenced: false });
  t.truthy((await newest()).resolvedAt);
  await offline();
  await round();
  t.deepEqual(hooks.received, []);
  await api.ok('DELETE', `/alerts/silences/${silence.id}`);
  await round();
  t.is(hooks.received.length, 1);
  t.like(hooks.received[0]!.body, { kind: 'node_offline', status: 'firing' });
  await api.refused(t, [404, 'ALERT_SILENCE_NOT_FOUND'], 'DELETE', `/alerts/silences/${silence.id}`);
  t.deepEqual((await api.ok('GET', '/alerts/silences')).items, []);
  await online();
  await round();
});

test.serial(
  'a silence waits with messages that are tried again, and matches by kind or by what an alert is about',
  async (t) => {
    hooks.status = 503;
    await offline();
    await round();
    t.is(hooks.received.length, 1);
    hooks.status = 200;
    const other = await api.ok('POST', '/alerts/silences', {
      kinds: ['high_5xx'],
      reason: 'Other',
      durationSeconds: 300,
    });
    const same = await api.ok('POST', '/alerts/silences', { resourceId: nodeId, reason: 'Same', durationSeconds: 300 });
    await later();
    await round();
    t.is(hooks.received.length, 1, 'silenced');
    await api.sql('alert_silence').where({ id: same.id }).update({ ends_at: new Date() });
    await round();
    t.is(hooks.received.length, 2, 'the silence is over; that of another kind matches nothing');
    t.is(hooks.received[0]!.body.id, hooks.received[1]!.body.id);
    await api.ok('DELETE', `/alerts/silences/${other.id}`);
    await api.badField(t, '/kinds', 'POST', '/alerts/silences', { reason: 'All', durationSeconds: 300 });
    await api.badField(t, '/durationSeconds', 'POST', '/alerts/silences', {
      kinds: ['high_5xx'],
      reason: 'Long',
      durationSeconds: 31 * 86_400,
    });
    const many = Array.from({ length: 100 }, (_, n) => ({
      id: `many-${n}`,
      kinds: ['high_5xx'],
      resource_name: '',
      reason: 'many',
      created_by: 'x',
      created_at: new Date(),
      ends_at: new Date(Date.now() + 60_000),
    }));
    await api.sql('alert_silence').insert(many);
    const data = await api.refused(t, [409, 'ALERT_SILENCE_LIMIT'], 'POST', '/alerts/silences', {
      kinds: ['high_5xx'],
      reason: 'One more',
      durationSeconds: 300,
    });
    t.is(data.limit, 100);
    await api.sql('alert_silence').delete();
    await online();
    await round();
  },
);

test.serial(
  'many alerts of a kind become one message that names them, and one when they ended; later ones are gathered',
  async (t) => {
    await api.sql('alert').delete();
    const sites = Array.from({ length: 40 }, (_, n) => `group-${String(n).padStart(2, '0')}`);
    const began = new Date();
    const open = (ids: string[]) =>
      api
        .sql('alert')
        .insert(
          ids.map((id) => ({ kind: 'high_5xx', site_id: id, started_at: began, detail: JSON.stringify({ name: id }) })),
        );
    await open(sites);
    hooks.status = 503;
    await deliver();
    t.is(hooks.received.length, 1);
    t.is(hooks.received[0]!.body.others, 39);
    t.is(hooks.received[0]!.body.group.length, 10);
    // Tried again it is the same, whatever began meanwhile.
    await open(['group-late']);
    hooks.status = 200;
    await later();
    await api
      .sql('alert_delivery')
      .where({ attempts: 0, state: 'waiting' })
      .update({ due_at: new Date(Date.now() + 60_000) });
    await deliver();
    t.is(hooks.received.length, 2);
    t.deepEqual(hooks.received[1]!.body, hooks.received[0]!.body);
    t.is((await deliveries({ state: 'grouped' })).length, 39);
    t.is((await deliveries({ state: 'waiting' })).length, 1, 'the later one is gathered');
    await api.sql('alert').update({ resolved_at: new Date() });
    await deliver();
    t.is(hooks.received.length, 3);
    t.like(hooks.received[2]!.body, { status: 'resolved', others: 39 });
    t.is((await deliveries({ state: 'dropped' })).length, 1, 'that which nobody was told of');
    await api.sql('alert').delete();
  },
);

test.serial('a cause that ended before its message was sent is told to nobody', async (t) => {
  await offline();
  await reviewAlerts(running.running.runtime, SOURCES, new Date());
  await online();
  await round();
  t.deepEqual(hooks.received, []);
  // Likewise where the first attempts failed; but then the receiver may have got one, and is told of the end.
  hooks.status = 500;
  await offline();
  await round();
  hooks.status = 200;
  await online();
  await later();
  await round();
  await round();
  t.deepEqual(
    hooks.received.map(({ body }) => body.status),
    ['firing', 'resolved'],
  );
});

test.serial('a subscription receives its kinds of its sites, and nodes of their clusters', async (t) => {
  await api.ok('PUT', `/alerts/channels/${webhookId}`, { name: 'Pager', platform: false });
  const elsewhere = await api.cluster('elsewhere');
  const otherSite = (await api.site(elsewhere, 'elsewhere.example')).id;
  const channelId = webhookId;
  await api.badField(t, '/siteIds', 'POST', '/alerts/subscriptions', { channelId, kinds: ['high_5xx'] });
  await api.badField(t, '/siteIds', 'POST', '/alerts/subscriptions', {
    channelId,
    kinds: ['high_5xx'],
    allSites: true,
    siteIds: [siteId],
  });
  await api.badField(t, '/kinds/0', 'POST', '/alerts/subscriptions', { channelId, kinds: ['nothing'], allSites: true });
  await api.refused(t, [404, 'SITE_NOT_FOUND'], 'POST', '/alerts/subscriptions', {
    channelId,
    kinds: ['high_5xx'],
    siteIds: ['nothing'],
  });
  t.deepEqual((await api.ok('GET', '/alerts/available-channels')).items, [
    { id: webhookId, name: 'Pager', kind: 'webhook' },
  ]);
  const made = await api.ok('POST', '/alerts/subscriptions', {
    channelId,
    kinds: ['node_offline', 'cc_mitigation'],
    siteIds: [otherSite],
  });
  t.deepEqual((await api.ok('GET', '/alerts/available-channels')).items, []);
  await api.refused(t, [409, 'ALERT_SUBSCRIPTION_EXISTS'], 'POST', '/alerts/subscriptions', {
    channelId,
    kinds: ['high_5xx'],
    allSites: true,
  });
  await offline();
  await round();
  t.deepEqual(hooks.received, [], 'a node of another cluster');
  await online();
  await round();
  await api.ok('PUT', `/alerts/subscriptions/${made.id}`, { kinds: ['node_offline', 'high_5xx'], siteIds: [siteId] });
  await offline();
  await api.sql('alert').insert([
    { kind: 'cc_mitigation', site_id: siteId, started_at: new Date(), detail: { level: 2 } },
    { kind: 'config_rollout_failed', cluster_id: clusterId, started_at: new Date() },
  ]);
  await deliver();
  t.deepEqual(hooks.received, [], 'kinds that it does not have, and those of the installation');
  await round();
  t.deepEqual(
    hooks.received.map(({ body }) => body.kind),
    ['node_offline'],
  );
  await online();
  await api.sql('alert').update({ resolved_at: new Date() }).whereNull('resolved_at');
  await api.ok('DELETE', `/sites/${otherSite}`);
  await api.ok('DELETE', `/alerts/subscriptions/${made.id}`);
  await api.refused(t, [404, 'ALERT_SUBSCRIPTION_NOT_FOUND'], 'DELETE', `/alerts/subscriptions/${made.id}`);
});

test.serial('a subscription ends with its last site', async (t) => {
  const site = await api.site(clusterId, 'short.example');
  await api.ok('POST', '/alerts/subscriptions', { channelId: webhookId, kinds: ['high_5xx'], siteIds: [site.id] });
  await api.ok('DELETE', `/sites/${site.id}`);
  t.is((await api.ok('GET', '/alerts/subscriptions')).total, 0);
  const next = await api.ok('POST', '/alerts/subscriptions', {
    channelId: webhookId,
    kinds: ['high_5xx'],
    allSites: true,
  });
  await api.ok('DELETE', `/alerts/subscriptions/${next.id}`);
});

const services: readonly [
  kind: string,
  config: () => object,
  answer: string,
  seen: (body: Body, path: string) => unknown,
  refusal: string,
][] = [
  [
    'slack',
    () => ({ kind: 'slack', url: `${hooks.url}/slack` }),
    'ok',
    ({ text }) => text.includes('Test message'),
    '',
  ],
];
for (const [kind, config, answer, isRight, refusal] of services)
  test.serial(`${kind}: the test message arrives`, async (t) => {
    hooks.answer = answer;
    const { id } = await api.ok('POST', '/alerts/channels', { name: kind, enabled: false, config: config() });
    await api.ok('POST', `/alerts/channels/${id}/test`, {});
    t.true(isRight(hooks.received[0]!.body, hooks.received[0]!.path), refusal);
    t.not((await api.ok('GET', '/alerts/channels')).items.find((one: Body) => one.id === id).lastSentAt, null);
    await api.ok('DELETE', `/alerts/channels/${id}`);
  });

test.serial('a test that fails says why: address, status, size', async (t) => {
  const reasonOf = async (config: object) => {
    const { id } = await api.ok('POST', '/alerts/channels', { name: 'Failing', config });
    const { reason } = await api.refused(t, [502, 'ALERT_SEND_FAILED'], 'POST', `/alerts/channels/${id}/test`, {});
    await api.ok('DELETE', `/alerts/channels/${id}`);
    return reason;
  };
  t.is(await reasonOf({ kind: 'webhook', url: 'http://169.254.169.254/latest/meta-data' }), 'refused');
  hooks.status = 302;
  t.is(await reasonOf(webhook()), 'status');
  hooks.status = 401;
  t.is(await reasonOf(webhook()), 'authentication');
  Object.assign(hooks, { status: 200, answer: 'x'.repeat(100_000) });
  t.is(await reasonOf(webhook()), 'too_large');
  t.is(await reasonOf({ kind: 'webhook', url: 'http://127.0.0.1:1/' }), 'unreachable');
});

test.serial(
  'mail goes through a real server, with STARTTLS and with TLS, and only to one that proves who it is',
  async (t) => {
    const { id } = await api.ok('POST', '/alerts/channels', {
      name: 'Mail',
      locale: 'zh-CN',
      config: { kind: 'email', to: ['one@example.org', 'two@example.org'] },
    });
    const tried = (answer: [number, string]) => api.refused(t, answer, 'POST', `/alerts/channels/${id}/test`, {});
    await tried([412, 'ALERT_SMTP_NOT_CONFIGURED']);
    const smtp = {
      host: 'localhost',
      port: mail.ports.tls,
      from: 'Edge console <console@example.org>',
      username: mail.user,
      password: mail.password,
      ca: mail.ca,
    };
    t.like(await api.ok('PUT', '/alerts/smtp', smtp), { host: 'localhost', passwordSet: true, secure: true });
    await api.ok('POST', `/alerts/channels/${id}/test`, {});
    const { password, ...kept } = smtp;
    const { ca, ...without } = kept;
    await api.refused(t, [400, 'SMTP_PASSWORD_REQUIRED'], 'PUT', '/alerts/smtp', {
      ...kept,
      host: 'elsewhere.example',
    });
    await api.refused(t, [400, 'SMTP_CA_INVALID'], 'PUT', '/alerts/smtp', { ...smtp, ca: 'nothing' });
    await api.badField(t, '/from', 'PUT', '/alerts/smtp', { ...smtp, from: 'a@b.example\nBcc: c@d.example' });
    await api.ok('PUT', '/alerts/smtp', { ...kept, from: 'console@example.org' });
    await api.ok('PUT', '/alerts/smtp', { ...smtp, port: mail.ports.starttls, secure: false });
    await api.ok('POST', `/alerts/channels/${id}/test`, {});
    const mails = mail.mails();
    t.is(mails.length, 2);
    for (const text of mails) {
      t.regex(text, /two@example\.org/);
      t.regex(text, /Message-I[dD]: <[0-9a-f-]{36}@/);
      t.regex(text, /Auto-Submitted: auto-generated/);
    }
    await api.ok('PUT', '/alerts/smtp', { ...smtp, password: 'wrong' });
    t.is((await tried([502, 'ALERT_SEND_FAILED'])).reason, 'authentication');
    await api.ok('PUT', '/alerts/smtp', { ...without, password });
    t.is((await tried([502, 'ALERT_SEND_FAILED'])).reason, 'tls');
    t.false(JSON.stringify(await api.ok('GET', '/alerts/smtp')).includes('battery'));
    t.false(JSON.stringify(await api.sql('audit_entry')).includes('battery'));
    await api.ok('DELETE', `/alerts/channels/${id}`);
  },
);

test.serial('omitted fields of the policy take their defaults', async (t) => {
  t.like(await api.ok('GET', '/alerts/policy'), {
    nodeOfflineSeconds: 90,
    certificateHours: 72,
    errorRatio: 0.2,
    minimumRequests: 100,
    windowMinutes: 5,
    updatedAt: null,
  });
  await api.ok('PUT', '/alerts/policy', { nodeOfflineSeconds: 3600 });
  await offline();
  await round();
  t.deepEqual(
    (await api.ok('GET', '/alerts/events')).items.filter((one: Body) => one.resolvedAt === null),
    [],
  );
  t.like(await api.ok('PUT', '/alerts/policy', { errorRatio: 0.5 }), { nodeOfflineSeconds: 90, errorRatio: 0.5 });
  for (const wrong of [{ nodeOfflineSeconds: 44 }, { certificateHours: 721 }, { errorRatio: 0 }, { windowMinutes: 61 }])
    await api.badField(t, `/${Object.keys(wrong)[0]}`, 'PUT', '/alerts/policy', wrong);
  await online();
});

test.serial('there are 32 channels at most', async (t) => {
  const { total } = await api.ok('GET', '/alerts/channels');
  for (let n = total; n < 32; n++) await api.ok('POST', '/alerts/channels', { name: `${n}`, config: webhook() });
  const data = await api.refused(t, [409, 'ALERT_CHANNEL_LIMIT'], 'POST', '/alerts/channels', {
    name: 'x',
    config: webhook(),
  });
  t.is(data.limit, 32);
});
