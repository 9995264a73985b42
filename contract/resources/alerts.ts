// Who is told when something goes wrong: channels, which sites each covers, when an alert begins, and what was sent.
import Type, { type Static } from 'typebox';
import { ALERT_LOCALES } from '../alert-kind.ts';
import { ALERT_LISTS } from '../gen/alerts.ts';
import { procedure, resource } from '../procedure.ts';
import { merged } from '../registered.ts';
import {
  Empty,
  ExpectedUpdatedAt,
  Id,
  Input,
  Nullable,
  ONE_LINE,
  OneOf,
  Page,
  PageQuery,
  Timestamp,
} from '../scalars/common.ts';
import { settings } from '../settings.ts';

export const ALERTS = merged(ALERT_LISTS);
export type AlertKind = keyof typeof ALERTS;
/** In the order of lists. */
export const ALERT_KINDS: readonly AlertKind[] = (Object.keys(ALERTS) as AlertKind[]).sort(
  (a, b) => ALERTS[a].order - ALERTS[b].order,
);

export const CHANNEL_KINDS = ['webhook', 'email', 'dingtalk', 'wecom', 'telegram', 'slack'] as const;
export type ChannelKind = (typeof CHANNEL_KINDS)[number];
export const MAX_CHANNELS = 32;
/** Newest events that are listed. */
export const MAX_ALERT_EVENTS = 100;
export const MAX_SUBSCRIBED_SITES = 1000;

/** Why a message was not delivered. */
export const SEND_FAILURES = [
  'refused',
  'unreachable',
  'timeout',
  'tls',
  'too_large',
  'status',
  'rejected',
  'authentication',
  'not_configured',
] as const;
export type SendFailure = (typeof SEND_FAILURES)[number];

const Kind = OneOf(ALERT_KINDS, { description: 'What begins.' });
const Locale = OneOf(ALERT_LOCALES, { description: 'Language of the messages.' });
const Url = (description: string) =>
  Type.String({ minLength: 1, maxLength: 4096, pattern: '^[\\x21-\\x7e]+$', description });
const Secret = (description: string, limits: { minLength: number; maxLength: number }) =>
  Type.String({ ...limits, pattern: '^[\\x21-\\x7e]+$', description });

const ChannelConfig = Type.Union(
  [
    Input({
      kind: Type.Literal('webhook'),
      url: Url('URL that receives a POST with JSON for each message; http or https.'),
      bearer: Type.Optional(Secret('Token sent as `Authorization: Bearer`.', { minLength: 1, maxLength: 4096 })),
      signingKey: Type.Optional(
        Secret('Key of the signature in `webhook-signature`: `whsec_` and 24 to 64 bytes in base64.', {
          minLength: 38,
          maxLength: 128,
        }),
      ),
    }),
    Input({
      kind: Type.Literal('email'),
      to: Type.Array(
        Type.String({ minLength: 3, maxLength: 254, pattern: '^[^\\s@<>,;"\\u0000-\\u001f\\u007f]+@[^\\s@<>,;"]+$' }),
        { minItems: 1, maxItems: 20, uniqueItems: true, description: 'Addresses of the recipients.' },
      ),
    }),
    Input({
      kind: Type.Literal('dingtalk'),
      url: Url('URL of the robot, on oapi.dingtalk.com.'),
      secret: Type.Optional(Secret('Secret that signs the requests.', { minLength: 1, maxLength: 256 })),
    }),
    Input({ kind: Type.Literal('wecom'), url: Url('URL of the robot, on qyapi.weixin.qq.com.') }),
    Input({
      kind: Type.Literal('telegram'),
      token: Type.String({ maxLength: 128, pattern: '^[0-9]+:[A-Za-z0-9_-]+$', description: 'Token of the bot.' }),
      chatId: Type.String({
        maxLength: 64,
        pattern: '^(-?[0-9]+|@[A-Za-z0-9_]+)$',
        description: 'Chat that receives the messages: an id, or @name of a channel.',
      }),
    }),
    Input({
      kind: Type.Literal('slack'),
      url: Url('URL of an incoming webhook of Slack, Mattermost or another service that takes the same.'),
    }),
  ],
  { description: 'Where messages go. Never returned.' },
);
export type ChannelConfig = Static<typeof ChannelConfig>;

const channel = {
  name: Type.String({ minLength: 1, maxLength: 100, pattern: ONE_LINE, description: 'Name shown in lists.' }),
  enabled: Type.Boolean({ description: 'Whether messages are sent.' }),
  platform: Type.Boolean({ description: 'Whether the channel receives every alert, without a subscription.' }),
  locale: Locale,
};

export const AlertChannel = Type.Object({
  id: Id,
  ...channel,
  kind: OneOf(CHANNEL_KINDS),
  lastError: Nullable(OneOf(SEND_FAILURES, { description: 'Why the latest message failed; null if it did not.' })),
  lastSentAt: Nullable({ ...Timestamp, description: 'When the latest message was delivered.' }),
  createdAt: Timestamp,
  updatedAt: Timestamp,
});
export type AlertChannel = Static<typeof AlertChannel>;

const change = {
  name: channel.name,
  enabled: Type.Optional({ ...channel.enabled, default: true }),
  platform: Type.Optional({ ...channel.platform, default: false }),
  locale: Type.Optional({ ...Locale, default: 'en' }),
};

const read = { status: 200, readOnly: true, audit: null, idempotency: 'accepted' } as const;

export const alertChannels = resource('alerts.channels', {
  list: procedure({
    ...read,
    access: 'operator',
    method: 'GET',
    path: '/alerts/channels',
    summary: 'Lists alert channels by name, without their configuration.',
    input: Input({ ...PageQuery(50) }),
    output: Page(AlertChannel),
    errors: [],
  }),
  create: procedure({
    access: 'operator',
    idempotency: 'accepted',
    method: 'POST',
    path: '/alerts/channels',
    summary: 'Creates an alert channel.',
    input: Input({ ...change, config: ChannelConfig }),
    output: AlertChannel,
    status: 201,
    readOnly: false,
    audit: 'alert.channel_create',
    errors: ['ALERT_CHANNEL_LIMIT'],
  }),
  update: procedure({
    access: 'operator',
    idempotency: 'accepted',
    method: 'PUT',
    path: '/alerts/channels/{id}',
    summary: 'Replaces an alert channel. The configuration stays if omitted.',
    input: Input({ id: Id, ...change, config: Type.Optional(ChannelConfig), expectedUpdatedAt: ExpectedUpdatedAt }),
    output: AlertChannel,
    status: 200,
    readOnly: false,
    audit: 'alert.channel_update',
    errors: ['ALERT_CHANNEL_NOT_FOUND', 'UPDATED_AT_MISMATCH'],
  }),
  delete: procedure({
    access: 'operator',
    idempotency: 'accepted',
    method: 'DELETE',
    path: '/alerts/channels/{id}',
    summary: 'Deletes an alert channel with its subscription. Messages that wait are not sent.',
    input: Input({ id: Id }),
    output: Empty,
    status: 200,
    readOnly: false,
    audit: 'alert.channel_delete',
    errors: ['ALERT_CHANNEL_NOT_FOUND'],
  }),
  test: procedure({
    access: 'operator',
    idempotency: 'accepted',
    method: 'POST',
    path: '/alerts/channels/{id}/test',
    summary: 'Sends a test message through an alert channel, also through a disabled one.',
    input: Input({ id: Id }),
    output: Empty,
    slow: true,
    status: 200,
    readOnly: false,
    audit: 'alert.channel_test',
    errors: ['ALERT_CHANNEL_NOT_FOUND', 'ALERT_SEND_FAILED', 'ALERT_SMTP_NOT_CONFIGURED'],
  }),
});

export const AvailableAlertChannel = Type.Object({ id: Id, name: channel.name, kind: OneOf(CHANNEL_KINDS) });

export const availableAlertChannels = resource('alerts.availableChannels', {
  list: procedure({
    ...read,
    access: 'operator',
    method: 'GET',
    path: '/alerts/available-channels',
    summary: 'Lists enabled alert channels that can get a subscription.',
    input: Input({ ...PageQuery(50) }),
    output: Page(AvailableAlertChannel),
    errors: [],
  }),
});

const policy = {
  nodeOfflineSeconds: Type.Integer({
    minimum: 45,
    maximum: 3600,
    default: 90,
    description: 'Silence of a node in seconds after which it is offline.',
  }),
  certificateHours: Type.Integer({
    minimum: 1,
    maximum: 720,
    default: 72,
    description: 'Hours before the end of a certificate.',
  }),
  errorRatio: Type.Number({
    minimum: 0.01,
    maximum: 1,
    default: 0.2,
    description: 'Share of 5xx among the responses of a site.',
  }),
  minimumRequests: Type.Integer({
    minimum: 1,
    maximum: 1_000_000,
    default: 100,
    description: 'Requests of a site in the window, at least.',
  }),
  windowMinutes: Type.Integer({
    minimum: 1,
    maximum: 60,
    default: 5,
    description: 'Minutes over which 5xx are counted.',
  }),
};

export const AlertPolicy = Type.Object({ ...policy, updatedAt: Nullable(Timestamp) });
export type AlertPolicy = Static<typeof AlertPolicy>;

export const alertPolicy = resource(
  'alerts.policy',
  settings({
    path: '/alerts/policy',
    of: {},
    reads: 'Returns when alerts begin.',
    saves: 'Saves when alerts begin. Omitted fields take their defaults.',
    change: {
      nodeOfflineSeconds: Type.Optional(policy.nodeOfflineSeconds),
      certificateHours: Type.Optional(policy.certificateHours),
      errorRatio: Type.Optional(policy.errorRatio),
      minimumRequests: Type.Optional(policy.minimumRequests),
      windowMinutes: Type.Optional(policy.windowMinutes),
      expectedUpdatedAt: ExpectedUpdatedAt,
    },
    output: AlertPolicy,
    saved: AlertPolicy,
    audit: 'alert.policy_update',
    saveErrors: ['UPDATED_AT_MISMATCH'],
  }),
);

const smtp = {
  host: Type.String({ maxLength: 253, description: 'Name or address of the mail server; empty: no mail is sent.' }),
  port: Type.Integer({ minimum: 1, maximum: 65535, default: 465, description: 'Port of the mail server.' }),
  secure: Type.Boolean({
    default: true,
    description: 'TLS from the first byte; otherwise STARTTLS, which the server must offer.',
  }),
  from: Type.String({ maxLength: 320, description: 'Sender: an address, or `Name <address>`.' }),
  username: Type.String({ maxLength: 256, description: 'User name; empty: no authentication.' }),
};
const Ca = Type.String({
  maxLength: 65_536,
  description: 'PEM of the certificate authorities that vouch for the server; empty: those of the system.',
});

export const AlertSmtp = Type.Object({
  ...smtp,
  ca: Ca,
  passwordSet: Type.Boolean({ description: 'Whether a password is stored.' }),
  updatedAt: Nullable(Timestamp),
});
export type AlertSmtp = Static<typeof AlertSmtp>;

export const alertSmtp = resource(
  'alerts.smtp',
  settings({
    path: '/alerts/smtp',
    of: {},
    reads: 'Returns the mail server, without its password.',
    saves: 'Saves the mail server. The password stays if omitted and nothing else of the connection changes.',
    change: {
      host: smtp.host,
      port: Type.Optional(smtp.port),
      secure: Type.Optional(smtp.secure),
      from: smtp.from,
      username: Type.Optional({ ...smtp.username, default: '' }),
      password: Type.Optional(Type.String({ maxLength: 1024, description: 'Password. Never returned.' })),
      ca: Type.Optional({ ...Ca, default: '' }),
      expectedUpdatedAt: ExpectedUpdatedAt,
    },
    output: AlertSmtp,
    saved: AlertSmtp,
    audit: 'alert.smtp_update',
    saveErrors: ['SMTP_PASSWORD_REQUIRED', 'SMTP_CA_INVALID', 'UPDATED_AT_MISMATCH'],
  }),
);

const subscription = {
  kinds: Type.Array(Kind, {
    minItems: 1,
    maxItems: 64,
    uniqueItems: true,
    description:
      'Alerts that are sent. Those about the whole installation go only to channels that receive everything.',
  }),
  enabled: Type.Boolean({ description: 'Whether messages are sent.' }),
};
const SiteIds = Type.Array(Id, {
  maxItems: MAX_SUBSCRIBED_SITES,
  uniqueItems: true,
  description: 'IDs of the sites; empty with `allSites`.',
});
const AllSites = Type.Boolean({ description: 'Whether the subscription is for all sites, also later ones.' });

export const AlertSubscription = Type.Object({
  id: Id,
  channelId: Id,
  channelName: channel.name,
  ...subscription,
  allSites: AllSites,
  siteIds: SiteIds,
  createdAt: Timestamp,
  updatedAt: Timestamp,
});
export type AlertSubscription = Static<typeof AlertSubscription>;

const subscribed = {
  kinds: subscription.kinds,
  enabled: Type.Optional({ ...subscription.enabled, default: true }),
  allSites: Type.Optional({ ...AllSites, default: false }),
  siteIds: Type.Optional(SiteIds),
};

export const alertSubscriptions = resource('alerts.subscriptions', {
  list: procedure({
    ...read,
    access: 'operator',
    method: 'GET',
    path: '/alerts/subscriptions',
    summary: 'Lists the subscriptions of alert channels.',
    input: Input({ ...PageQuery(50) }),
    output: Page(AlertSubscription),
    errors: [],
  }),
  create: procedure({
    access: 'operator',
    idempotency: 'accepted',
    method: 'POST',
    path: '/alerts/subscriptions',
    summary: 'Subscribes an alert channel to alerts of all sites, or of some.',
    input: Input({ channelId: Id, ...subscribed }),
    output: AlertSubscription,
    status: 201,
    readOnly: false,
    audit: 'alert.subscribe',
    errors: ['ALERT_CHANNEL_NOT_FOUND', 'ALERT_SUBSCRIPTION_EXISTS', 'SITE_NOT_FOUND'],
  }),
  update: procedure({
    access: 'operator',
    idempotency: 'accepted',
    method: 'PUT',
    path: '/alerts/subscriptions/{id}',
    summary: 'Replaces a subscription.',
    input: Input({ id: Id, ...subscribed, expectedUpdatedAt: ExpectedUpdatedAt }),
    output: AlertSubscription,
    status: 200,
    readOnly: false,
    audit: 'alert.subscription_update',
    errors: ['ALERT_SUBSCRIPTION_NOT_FOUND', 'SITE_NOT_FOUND', 'UPDATED_AT_MISMATCH'],
  }),
  delete: procedure({
    access: 'operator',
    idempotency: 'accepted',
    method: 'DELETE',
    path: '/alerts/subscriptions/{id}',
    summary: 'Deletes a subscription.',
    input: Input({ id: Id }),
    output: Empty,
    status: 200,
    readOnly: false,
    audit: 'alert.unsubscribe',
    errors: ['ALERT_SUBSCRIPTION_NOT_FOUND'],
  }),
});

const Deliveries = Type.Integer({ minimum: 0 });

export const AlertEvent = Type.Object({
  id: Id,
  kind: Kind,
  siteId: Nullable(Id),
  siteName: Type.String({
    description: 'Name of what the alert is about: the site, else the node, certificate or cluster.',
  }),
  resourceId: Type.String({ description: 'ID of what the alert is about; empty for the installation.' }),
  text: Type.String({ description: 'The message in English, as of the beginning.' }),
  detail: Type.Record(Type.String(), Type.Unknown(), { description: 'Values that the message names.' }),
  startedAt: Timestamp,
  resolvedAt: { ...Nullable(Timestamp), description: 'Null while the cause lasts.' },
  silencedAt: { ...Nullable(Timestamp), description: 'When a silence first kept it from being sent; null: never.' },
  silenced: Type.Boolean({ description: 'Whether a silence keeps it from being sent now.' }),
  deliveries: Type.Object(
    { sent: Deliveries, waiting: Deliveries, failed: Deliveries, dropped: Deliveries, grouped: Deliveries },
    {
      description:
        'Messages about it, by what became of them. `dropped`: the cause had ended before. `grouped`: a message about ' +
        'many alerts names it.',
    },
  ),
});
export type AlertEvent = Static<typeof AlertEvent>;

export const alertEvents = resource('alerts.events', {
  list: procedure({
    ...read,
    access: 'operator',
    method: 'GET',
    path: '/alerts/events',
    summary: 'Lists the newest 100 alerts, of all sites or one.',
    input: Input({ siteId: Type.Optional(Id), ...PageQuery(50) }),
    output: Page(AlertEvent),
    errors: [],
  }),
});
