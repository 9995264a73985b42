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
  description: 'site: enforced on one site; platform: enforced on every site and node.',
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
  description: 'cc_ip_rate and unknown_host_scan: reasons of automatic bans.',
});

export const Ban = Type.Object({
  id: Id,
  scope: Scope,
  cidr: Type.String({ description: 'Canonical CIDR, always with a prefix length.' }),
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
  seq: { ...Decimal, description: 'Sequence number of the latest change to this ban in the ban feed.' },
  distributed: Type.Boolean({ description: 'Whether nodes receive the ban.' }),
  unappliedNodes: Type.Integer({ minimum: 0, description: 'Online nodes that could not apply the ban.' }),
});

const create = {
  scope: Scope,
  siteId: Type.Optional({ ...Id, description: 'Required with scope `site`, forbidden with scope `platform`.' }),
  cidr: Type.String({
    maxLength: 256,
    description: 'IP address or CIDR. Prefix length at least /16 (IPv4) or /48 (IPv6).',
  }),
  reason: ManualReason,
  durationSeconds: Type.Integer({ description: 'Length of the ban in seconds, 60 to 604800.' }),
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
        Type.String({
          maxLength: 256,
          description: 'IP address or CIDR: returns the bans that cover it or lie inside it.',
        }),
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
    summary: 'Bans an address or range for a limited time, or renews the active ban of the same scope and address.',
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
    summary: 'Previews the effect of creating a ban; changes nothing.',
    input: Input(create, { examples: [EXAMPLE] }),
    output: Type.Object({
      cidr: Nullable(Type.String({ description: 'Canonical CIDR; null if the input is not valid.' })),
      addresses: { ...Decimal, description: 'Number of addresses that the ban covers.' },
      renews: Nullable(Type.Object({ id: Id, expiresAt: Timestamp })),
      refusal: Nullable(
        Type.Object(
          { code: Type.String(), data: Type.Record(Type.String(), Type.Unknown()) },
          {
            description: 'The error that creating the ban would return now.',
          },
        ),
      ),
      coveredBans: Type.Integer({ minimum: 0, description: 'Active bans of the same scope inside the range.' }),
      warnings: Type.Array(
        Type.Object({
          kind: OneOf(['own_address', 'console', 'proxies', 'origins', 'sessions'], {
            description:
              'own_address: the caller is in the range. console: addresses of the console or its node channel are. ' +
              'proxies: reverse proxies of the console, or networks that clusters trust to name clients. origins: ' +
              'origins of sites (of the one site with scope site). sessions: addresses of signed-in users.',
          }),
          address: Type.String({ description: 'One of the addresses.' }),
          count: Type.Integer({
            minimum: 1,
            description: 'Number of addresses, networks, sites or sessions; 100 means 100 or more.',
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
  maxTotal: Type.Integer({
    minimum: 100,
    maximum: 100_000,
    description: 'Highest number of active manual bans. Default 10000.',
  }),
  shareAutoBans: Type.Boolean({
    description:
      'Whether automatic bans are distributed to other nodes. Default true. A change affects only later bans.',
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
    reads: 'Returns the ban settings.',
    saves: 'Changes the ban settings; omitted ones keep their values.',
    change: banSettingsChange,
    output: BanSettings,
    saved: BanSettings,
    audit: 'system.bans_update',
  }),
  rehearse: procedure({
    method: 'POST',
    path: '/settings/bans/rehearse',
    summary: 'Previews the effect that the change would have had in the last hour; changes nothing.',
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
