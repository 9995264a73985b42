import Type from 'typebox';
import { procedure, resource } from '../procedure.ts';
import {
  Decimal,
  Empty,
  Id,
  Input,
  Nullable,
  OneOf,
  Page,
  PageQuery,
  SortQuery,
  Timestamp,
} from '../scalars/common.ts';
import { settings } from '../settings.ts';
import { Rehearsal } from './protection.ts';

/** Bounds of a manual ban's length, in seconds. */
export const MIN_BAN_SECONDS = 60;
export const MAX_BAN_SECONDS = 604_800;
/** Shortest prefix lengths. */
export const MIN_PREFIX = { 4: 16, 6: 48 } as const;
export const DEFAULT_BAN_SETTINGS = { maxTotal: 10_000, shareAutoBans: true };

/** What lists of bans can be sorted by. */
export const BAN_SORT = ['createdAt', 'expiresAt'] as const;

const Scope = Type.Union([Type.Literal('site'), Type.Literal('platform')], {
  description: 'site: enforced for one site; platform: on every site and node.',
});
const Source = Type.Union([Type.Literal('manual'), Type.Literal('auto')]);
const manualReasons = [
  Type.Literal('abuse'),
  Type.Literal('attack'),
  Type.Literal('scanner'),
  Type.Literal('spam'),
  Type.Literal('other'),
] as const;
const ManualReason = Type.Union([...manualReasons]);
const Reason = Type.Union([...manualReasons, Type.Literal('cc_ip_rate'), Type.Literal('unknown_host_scan')], {
  description: 'cc_ip_rate and unknown_host_scan: automatic bans.',
});

export const Ban = Type.Object({
  id: Id,
  scope: Scope,
  cidr: Type.String({ description: 'Canonical, always with its prefix length.' }),
  reason: Reason,
  source: Source,
  siteId: Nullable(Id),
  siteName: Nullable(Type.String()),
  node: Nullable(Type.Object({ id: Id, name: Type.String() })),
  trigger: Nullable(
    Type.Object({
      metric: Type.String(),
      observed: Type.Number(),
      threshold: Type.Number(),
      windowSeconds: Type.Integer(),
    }),
  ),
  createdBy: Nullable(Type.Object({ type: Type.String(), id: Nullable(Type.String()), name: Type.String() })),
  createdAt: Timestamp,
  expiresAt: Timestamp,
  seq: { ...Decimal, description: 'Number of the last change in the ban feed.' },
  distributed: Type.Boolean({ description: 'Whether nodes receive it.' }),
  unappliedNodes: Type.Integer({ minimum: 0, description: 'Online nodes that could not hold the ban.' }),
});

const create = {
  scope: Scope,
  siteId: Type.Optional({ ...Id, description: 'Required with scope site, forbidden with platform.' }),
  cidr: Type.String({ maxLength: 256, description: 'IP address or CIDR, /16 (IPv4) or /48 (IPv6) or longer.' }),
  reason: ManualReason,
  durationSeconds: Type.Integer({ description: '60 to 604800.' }),
};

const EXAMPLE = { scope: 'platform', cidr: '203.0.113.0/24', reason: 'attack', durationSeconds: 3600 };

const ERRORS_OF_CREATE = [
  'BAN_INVALID_CIDR',
  'BAN_PREFIX_TOO_SHORT',
  'BAN_EXPIRY_OUT_OF_RANGE',
  'SITE_NOT_FOUND',
  'BAN_PROTECTED_ADDRESS',
  'BAN_PLATFORM_LIMIT',
] as const;

export const bans = resource('bans', {
  list: procedure({
    method: 'GET',
    path: '/bans',
    summary: 'Lists active bans, newest first unless sorted otherwise.',
    input: Input({
      scope: Type.Optional(Scope),
      siteId: Type.Optional(Id),
      source: Type.Optional(Source),
      address: Type.Optional(
        Type.String({ maxLength: 256, description: 'IP address or CIDR: bans covering it or inside it.' }),
      ),
      ...SortQuery(BAN_SORT),
      ...PageQuery(50),
    }),
    output: Page(Ban),
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: ['BAN_INVALID_CIDR'],
  }),
  create: procedure({
    method: 'POST',
    path: '/bans',
    summary: 'Bans an address or range for a time; an active ban of the same scope and address is renewed.',
    input: Input(create, { examples: [EXAMPLE] }),
    output: Ban,
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: 'ban.create',
    idempotency: 'accepted',
    errors: [...ERRORS_OF_CREATE],
  }),
  preview: procedure({
    method: 'POST',
    path: '/bans/preview',
    summary: 'Answers what creating the ban would do; changes nothing.',
    input: Input(create, { examples: [EXAMPLE] }),
    output: Type.Object({
      cidr: Nullable(Type.String({ description: 'Canonical address; null when it is none.' })),
      addresses: { ...Decimal, description: 'How many addresses it covers.' },
      renews: Nullable(Type.Object({ id: Id, expiresAt: Timestamp })),
      refusal: Nullable(
        Type.Object(
          { code: Type.String(), data: Type.Record(Type.String(), Type.Unknown()) },
          {
            description: 'The error that creating it answers now.',
          },
        ),
      ),
      coveredBans: Type.Integer({ minimum: 0, description: 'Active bans of the same scope inside the range.' }),
      warnings: Type.Array(
        Type.Object({
          kind: OneOf(['own_address', 'console', 'proxies', 'origins', 'sessions'], {
            description:
              'own_address: the caller is in the range; console: addresses of the console or its node channel are; ' +
              'proxies: reverse proxies of the console, or networks that clusters trust to name clients; ' +
              'origins: origins of sites (of the one site with scope site); ' +
              'sessions: addresses from which people are signed in.',
          }),
          address: Type.String({ description: 'One of them.' }),
          count: Type.Integer({
            minimum: 1,
            description: 'Addresses, networks, sites or sessions; 100 means 100 or more.',
          }),
        }),
      ),
    }),
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: null,
    idempotency: 'accepted',
    errors: [],
  }),
  delete: procedure({
    method: 'DELETE',
    path: '/bans/{id}',
    summary: 'Lifts a manual or automatic ban.',
    input: Input({ id: Id }),
    output: Empty,
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: 'ban.delete',
    idempotency: 'accepted',
    errors: ['BAN_NOT_FOUND'],
  }),
});

const BanSettings = Type.Object({
  maxTotal: Type.Integer({ minimum: 100, maximum: 100_000, description: 'Most active manual bans; default 10000.' }),
  shareAutoBans: Type.Boolean({
    description: 'Whether automatic bans go to other nodes, default true; a change affects bans added afterwards.',
  }),
});

const banSettingsChange = {
  maxTotal: Type.Optional(BanSettings.properties.maxTotal),
  shareAutoBans: Type.Optional(BanSettings.properties.shareAutoBans),
};

export const banSettings = resource('settings.bans', {
  ...settings({
    path: '/settings/bans',
    of: {},
    reads: 'Answers the ban settings.',
    saves: 'Changes the ban settings; omitted ones keep their values.',
    change: banSettingsChange,
    output: BanSettings,
    saved: BanSettings,
    audit: 'system.bans_update',
  }),
  rehearse: procedure({
    method: 'POST',
    path: '/settings/bans/rehearse',
    summary: 'Answers what the change would have done in the last hour; changes nothing.',
    input: Input(banSettingsChange),
    output: Rehearsal,
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: null,
    idempotency: 'accepted',
    errors: [],
  }),
});
