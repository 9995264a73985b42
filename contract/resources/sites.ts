import Type from 'typebox';
import { SITE_FEATURE_LISTS } from '../gen/site-features.ts';
import { procedure, resource } from '../procedure.ts';
import { merged } from '../registered.ts';
import { LEVELS, Level } from '../scalars/challenge.ts';
import {
  Decimal,
  ExpectedUpdatedAt,
  Id,
  Input,
  Nullable,
  ONE_LINE,
  OneOf,
  Page,
  PageQuery,
  SearchQuery,
  SortQuery,
  Timestamp,
} from '../scalars/common.ts';
import { MAX_LISTEN_PORTS } from './listen-ports.ts';
import { CacheRules, CacheRulesInput, CacheSettings, CacheSettingsInput } from './site-cache.ts';
import { Delivery, Launch } from './site-delivery.ts';
import {
  ContentSettings,
  ContentSettingsInput,
  Origin,
  OriginInput,
  OriginSettings,
  originSettingsInput,
} from './site-origins.ts';

export const MAX_DOMAINS = 50;
export const MAX_PATTERN_DOMAINS = 10;
export const MAX_ORIGINS = 32;
export const MAX_SITE_NAME = 100;

/** What lists of sites can be sorted by. */
export const SITE_SORT = ['name', 'createdAt', 'updatedAt'] as const;

/** What a site is in one word: its delivery, or that nobody serves it. */
export const SITE_STATES = ['unserved', 'unknown', 'pending', 'partial', 'live', 'disabled'] as const;
export type SiteState = (typeof SITE_STATES)[number];

/** What lists of sites can be narrowed to by level. */
const SITE_LEVELS = ['above_normal', ...LEVELS] as const;
export type SiteLevelFilter = (typeof SITE_LEVELS)[number];

const SiteName = Type.String({
  minLength: 1,
  maxLength: MAX_SITE_NAME,
  pattern: ONE_LINE,
  description: 'Name shown in lists. Default: the first domain, cut at 100 characters.',
});
const Domains = Type.Array(Type.String({ minLength: 1, maxLength: 1024 }), {
  minItems: 1,
  maxItems: MAX_DOMAINS,
  description:
    'Domain pattern: a.com, *.a.com (one more label), .a.com (one or more labels) or ~regex (the whole host). ' +
    'International names are stored as punycode. Labels may have underscores.',
});
const Origins = Type.Array(OriginInput, {
  minItems: 1,
  maxItems: MAX_ORIGINS,
  description: 'At least one origin in the default group, and at least one that is not a backup.',
});

const SitePorts = (protocol: string, usual: number) =>
  Type.Array(Type.Integer({ minimum: 1, maximum: 65535 }), {
    maxItems: 1 + MAX_LISTEN_PORTS,
    description: `Ports for ${protocol}: ${usual} and those of the cluster (listen-ports); sorted, each once.`,
  });
const PORTS = { http: SitePorts('HTTP', 80), https: SitePorts('HTTPS', 443) };
const Ports = Type.Object(PORTS, {
  description: 'Ports on which the site is served. Without a certificate its HTTPS ports are inactive.',
});
const PortsInput = (omitted: string) =>
  Type.Object(
    { http: Type.Optional(PORTS.http), https: Type.Optional(PORTS.https) },
    { additionalProperties: false, description: `An omitted list ${omitted}. At least one list must not be empty.` },
  );

export const Site = Type.Object({
  id: Id,
  name: Type.String(),
  enabled: Type.Boolean(),
  clusterId: Id,
  clusterName: Type.String(),
  domains: Type.Array(Type.String()),
  origins: Type.Array(Origin),
  originSettings: OriginSettings,
  contentSettings: ContentSettings,
  ports: Ports,
  cacheRules: CacheRules,
  cacheSettings: CacheSettings,
  delivery: Delivery,
  createdAt: Timestamp,
  updatedAt: Timestamp,
});

const Revision = Nullable({
  ...Decimal,
  description: 'Revision that publishes the change; null if nothing changed.',
});
/** What nodes told of a site lately. */
export const SITE_FIGURES = {
  level: {
    ...Nullable(Level),
    description: 'Highest level on a connected node; null: no node of the cluster has reported levels.',
  },
  requestsPerSecond: {
    ...Nullable(Type.Number({ minimum: 0 })),
    description: 'Rate in the latest reported minute of the five minutes before the current one; null: no report.',
  },
};
export const ListedSite = Type.Object({ ...Site.properties, ...SITE_FIGURES });

export const SiteChange = Type.Object({
  site: Site,
  revision: Revision,
  certificateReissue: Type.Optional(
    Type.Object(
      { id: Id, name: Type.String() },
      { description: 'Certificate that is being reissued for uncovered domains; absent: none.' },
    ),
  ),
});

const Feature = Type.Object({
  available: Type.Boolean(),
  reason: Nullable(
    Type.Union([Type.Literal('nodes'), Type.Literal('console')], {
      description: 'nodes: a node of the cluster lacks the capability; console: this version does not configure it.',
    }),
  ),
});

/** What the resources say of it, by name. */
export const SITE_FEATURES = merged(SITE_FEATURE_LISTS);
type SiteFeature = keyof typeof SITE_FEATURES;

const SiteFeatures = Type.Object(
  Object.fromEntries(Object.keys(SITE_FEATURES).map((name) => [name, Feature])) as Record<SiteFeature, typeof Feature>,
);

export const sites = resource('sites', {
  list: procedure({
    method: 'GET',
    path: '/sites',
    summary: 'Lists sites, newest first unless sorted otherwise.',
    input: Input({
      ...SearchQuery('Part of the name or of any domain, case-insensitive.'),
      clusterId: Type.Optional(Id),
      state: Type.Optional(
        OneOf(SITE_STATES, {
          description:
            'unserved: no node serves the enabled site; unknown: all nodes of its cluster are silent; ' +
            'pending: the site is on its way; else as ' +
            '`delivery.state`.',
        }),
      ),
      level: Type.Optional(
        OneOf(SITE_LEVELS, { description: 'Exactly this level, or any level above normal, on a connected node.' }),
      ),
      ...SortQuery(SITE_SORT),
      ...PageQuery(20),
    }),
    output: Page(ListedSite),
    status: 200,
    access: { scope: 'sites:read' },
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: [],
  }),
  get: procedure({
    method: 'GET',
    path: '/sites/{id}',
    summary: 'Returns a site.',
    input: Input({ id: Id }),
    output: Site,
    status: 200,
    access: { scope: 'sites:read' },
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: ['SITE_NOT_FOUND'],
  }),
  create: procedure({
    method: 'POST',
    path: '/sites',
    summary: 'Creates an enabled site and publishes it.',
    input: Input({
      name: Type.Optional(SiteName),
      clusterId: Type.Optional({
        ...Id,
        description: 'Cluster that serves the site; cannot be changed later. Default: the oldest cluster.',
      }),
      domains: Domains,
      origins: Origins,
      originSettings: Type.Optional(originSettingsInput('create')),
      contentSettings: Type.Optional(ContentSettingsInput),
      ports: Type.Optional(PortsInput('has the usual port: 80, 443')),
      cacheRules: Type.Optional(CacheRulesInput),
      cacheSettings: Type.Optional(CacheSettingsInput),
    }),
    output: SiteChange,
    status: 201,
    access: 'operator',
    readOnly: false,
    audit: 'site.create',
    idempotency: 'accepted',
    errors: [
      'NO_CLUSTER',
      'CLUSTER_NOT_FOUND',
      'DOMAIN_INVALID',
      'DOMAIN_IN_USE',
      'ORIGIN_ADDRESS_FORBIDDEN',
      'ORIGIN_HOST_HEADER_INVALID',
      'ORIGIN_GRPC_REQUIRES_HTTP2',
      'SITE_PORT_UNAVAILABLE',
      'SITE_PORTS_EMPTY',
      'SITE_HTTPS_PORT_NEEDS_CERTIFICATE',
      'CACHE_RULE_PRIORITY_DUPLICATE',
      'RULE_INVALID',
      'IP_LIST_REFERENCE_UNKNOWN',
      'PURGE_KEY_REQUIRED',
    ],
  }),
  update: procedure({
    method: 'PATCH',
    path: '/sites/{id}',
    summary:
      'Changes the given fields of a site. Inside `originSettings`, omitted `activeHealthCheck`, `tries`, ' +
      '`statusRetry`, `sessionAffinity`, `protocol` and `grpc` keep their values, and inside `cacheSettings` ' +
      '`keepCacheTag`, `xCache` and `purgeMethod`; other omitted fields return to their defaults.',
    input: Input({
      id: Id,
      name: Type.Optional(SiteName),
      domains: Type.Optional(Domains),
      origins: Type.Optional(Origins),
      originSettings: Type.Optional(originSettingsInput('update')),
      contentSettings: Type.Optional(ContentSettingsInput),
      ports: Type.Optional(PortsInput('stays unchanged')),
      cacheRules: Type.Optional(CacheRulesInput),
      cacheSettings: Type.Optional(CacheSettingsInput),
      expectedUpdatedAt: ExpectedUpdatedAt,
    }),
    output: SiteChange,
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: 'site.update',
    idempotency: 'accepted',
    errors: [
      'SITE_NOT_FOUND',
      'DOMAIN_INVALID',
      'DOMAIN_IN_USE',
      'ORIGIN_ADDRESS_FORBIDDEN',
      'ORIGIN_HOST_HEADER_INVALID',
      'ORIGIN_GRPC_REQUIRES_HTTP2',
      'SITE_PORT_UNAVAILABLE',
      'SITE_PORTS_EMPTY',
      'SITE_HTTPS_PORT_NEEDS_CERTIFICATE',
      'HTTPS_REDIRECT_PORT_INVALID',
      'RULE_INVALID',
      'CACHE_RULE_PRIORITY_DUPLICATE',
      'IP_LIST_REFERENCE_UNKNOWN',
      'PURGE_KEY_REQUIRED',
      'CERTIFICATE_DOMAIN_MISMATCH',
      'UPDATED_AT_MISMATCH',
    ],
  }),
  delete: procedure({
    method: 'DELETE',
    path: '/sites/{id}',
    summary: 'Deletes a site and lifts its bans.',
    input: Input({ id: Id }),
    output: Type.Object({ revision: Revision }),
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: 'site.delete',
    idempotency: 'accepted',
    errors: ['SITE_NOT_FOUND'],
  }),
  setEnabled: procedure({
    method: 'PUT',
    path: '/sites/{id}/enabled',
    summary: 'Enables or disables a site; has no effect if the site already has this state.',
    input: Input({ id: Id, enabled: Type.Boolean(), expectedUpdatedAt: ExpectedUpdatedAt }),
    output: SiteChange,
    status: 200,
    access: { scope: 'sites:write' },
    readOnly: false,
    audit: 'site.enable',
    idempotency: 'accepted',
    errors: ['SITE_NOT_FOUND', 'UPDATED_AT_MISMATCH', 'NODE_CAPABILITY_REQUIRED'],
  }),
  features: procedure({
    method: 'GET',
    path: '/sites/{id}/features',
    summary: 'Lists the site features, with whether every active node of the cluster has the capability.',
    input: Input({ id: Id }),
    output: SiteFeatures,
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: ['SITE_NOT_FOUND'],
  }),
  launch: procedure({
    method: 'GET',
    path: '/sites/{id}/launch',
    summary: 'Returns the remaining steps before clients reach the site. Resolves its domains, which can take seconds.',
    input: Input({ id: Id }),
    output: Launch,
    slow: true,
    status: 200,
    access: { scope: 'sites:read' },
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: ['SITE_NOT_FOUND'],
  }),
});
