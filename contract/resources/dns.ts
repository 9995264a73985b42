// DNS of clusters: accesses to DNS providers, what they can do, and all bindings at a glance.
import Type, { type Static } from 'typebox';
import { procedure, resource } from '../procedure.ts';
import {
  Decimal,
  Empty,
  ExpectedUpdatedAt,
  Id,
  Input,
  Nullable,
  ONE_LINE,
  OneOf,
  Page,
  PageQuery,
  SearchQuery,
  Timestamp,
} from '../scalars/common.ts';
import { RESOLUTION_LINES } from '../scalars/resolution-line.ts';
import { settings } from '../settings.ts';

export const DNS_MODES = ['off', 'manual', 'auto'] as const;
export type DnsMode = (typeof DNS_MODES)[number];

const Count = Type.Integer({ minimum: 0 });
const ProviderKey = Type.String({
  pattern: '^[a-z0-9]{1,32}$',
  description: 'Provider, as `id` in the catalogue.',
});
const Zone = Type.String({ minLength: 1, maxLength: 253, description: 'Zone, such as example.com.' });
const Credentials = Type.Record(Type.String(), Type.String({ maxLength: 16_384 }), {
  description: 'Values of the fields that the catalogue lists, by key. Secrets are never returned.',
});
const Name = Type.String({ minLength: 1, maxLength: 100, pattern: ONE_LINE, description: 'Name shown in lists.' });

const CatalogField = Type.Object({
  key: Type.String(),
  type: OneOf(['text', 'secret', 'select', 'textarea', 'url']),
  secret: Type.Boolean({ description: 'Whether the value is stored encrypted and never returned.' }),
  required: Type.Boolean(),
  placeholder: Type.String(),
  pattern: Nullable(Type.String({ description: 'Regular expression that the whole value matches.' })),
  maxLength: Count,
  options: Type.Array(Type.String(), { description: 'Choices of a select.' }),
  default: Type.String(),
});

export const DnsCatalogEntry = Type.Object({
  id: Type.String(),
  name: Type.String({ description: 'Proper name of the provider.' }),
  fields: Type.Array(CatalogField),
  capabilities: Type.Object({
    recordTypes: Type.Array(Type.String()),
    listZones: Type.Boolean({ description: 'Whether the zones of an access can be listed.' }),
    lines: Type.Array(OneOf(RESOLUTION_LINES), { description: 'Resolution lines that the provider supports.' }),
    apex: Nullable(OneOf(['cname', 'alias'])),
    endpoint: OneOf(['fixed', 'custom'], { description: 'custom: the operator names the server.' }),
    minTtl: Type.Integer({ description: 'Lowest TTL in seconds. Lower ones are raised when they are written.' }),
  }),
  permissions: Type.Array(Type.String(), {
    description: "Permissions that the access needs, in the provider's words.",
  }),
});
export type DnsCatalogEntry = Static<typeof DnsCatalogEntry>;

export const DnsProvider = Type.Object({
  id: Id,
  name: Name,
  provider: ProviderKey,
  zone: Zone,
  settings: Type.Record(Type.String(), Type.String(), { description: 'Values of the fields that are not secret.' }),
  clusterCount: { ...Count, description: 'Number of clusters whose records it writes.' },
  certificateCount: { ...Count, description: 'Number of certificates that use it for DNS-01 validation.' },
  lastError: Nullable(Type.String({ description: 'Error code of the latest use; null if it did not fail.' })),
  createdAt: Timestamp,
  updatedAt: Timestamp,
});
export type DnsProvider = Static<typeof DnsProvider>;

export const DnsBindingSummary = Type.Object({
  clusterId: Id,
  clusterName: Type.String(),
  mode: OneOf(DNS_MODES),
  providerId: Nullable(Id),
  zone: Nullable(Type.String()),
  domain: Type.String(),
  revision: { ...Nullable(Decimal), description: 'Newest DNS revision; null: none yet.' },
  applied: { ...Nullable(Decimal), description: 'DNS revision that the zone has; null: none yet.' },
  blocked: { ...Nullable(Decimal), description: 'DNS revision that mass-removal protection holds; null: none.' },
  failing: Type.Boolean({ description: 'Whether the records could not be written.' }),
});
export type DnsBindingSummary = Static<typeof DnsBindingSummary>;

const read = { status: 200, readOnly: true, audit: null, idempotency: 'accepted' } as const;
const write = { status: 200, readOnly: false, idempotency: 'accepted' } as const;

/** What a provider can answer when it is asked. */
const PROVIDER_ERRORS = [
  'DNS_PROVIDER_AUTH_FAILED',
  'DNS_PROVIDER_ZONE_NOT_FOUND',
  'DNS_PROVIDER_UNREACHABLE',
  'DNS_PROVIDER_RATE_LIMITED',
  'DNS_PROVIDER_FAILED',
  'DNS_ADDRESS_REFUSED',
] as const;

const trial = {
  id: Type.Optional({ ...Id, description: 'Stored access. Without it, `provider` and `credentials` are required.' }),
  provider: Type.Optional(ProviderKey),
  credentials: Type.Optional(Credentials),
};

export const dns = resource('dns', {
  catalog: procedure({
    ...read,
    access: { scope: null },
    method: 'GET',
    path: '/dns/catalog',
    summary: 'Lists the DNS providers that the console supports.',
    input: Input({}),
    output: Type.Array(DnsCatalogEntry),
    errors: [],
  }),
  bindings: procedure({
    ...read,
    access: 'operator',
    method: 'GET',
    path: '/dns/bindings',
    summary: 'Lists clusters by name with the state of their DNS.',
    input: Input({ ...SearchQuery('Part of the name of the cluster.'), ...PageQuery(50) }),
    output: Page(DnsBindingSummary),
    errors: [],
  }),
  zones: procedure({
    ...write,
    access: 'operator',
    slow: true,
    method: 'POST',
    path: '/dns/zones',
    summary: 'Lists the zones that an access sees, stored or not.',
    input: Input(trial),
    output: Type.Object({ zones: Type.Array(Type.String(), { maxItems: 10_000 }) }),
    audit: null,
    errors: ['DNS_PROVIDER_NOT_FOUND', 'DNS_ZONES_UNSUPPORTED', ...PROVIDER_ERRORS],
  }),
  test: procedure({
    ...write,
    access: 'operator',
    slow: true,
    method: 'POST',
    path: '/dns/test',
    summary: 'Reads a zone with an access, stored or not. Changes nothing.',
    input: Input({ ...trial, zone: Type.Optional(Zone) }),
    output: Type.Object({ ok: Type.Literal(true), records: { ...Count, description: 'Number of records read.' } }),
    audit: null,
    errors: ['DNS_PROVIDER_NOT_FOUND', ...PROVIDER_ERRORS],
  }),
  reconcile: procedure({
    ...write,
    access: 'operator',
    slow: true,
    method: 'POST',
    path: '/dns/reconcile',
    summary:
      'Reads the zones now and repairs their records, and returns after that. Limits the run to a cluster if given.',
    input: Input({ clusterId: Type.Optional(Id) }),
    output: Type.Object({ clusters: { ...Count, description: 'Number of clusters that were looked at.' } }),
    audit: 'dns.reconcile',
    errors: ['CLUSTER_NOT_FOUND', 'DNS_RECONCILE_BUSY'],
  }),
  siteTarget: procedure({
    ...read,
    access: { scope: 'sites:read' },
    method: 'GET',
    path: '/sites/{siteId}/cname',
    summary: 'Returns the name that the domains of a site should point to with a CNAME record.',
    input: Input({ siteId: Id }),
    output: Type.Object({
      target: { ...Nullable(Type.String()), description: 'null: the DNS of the cluster is not managed.' },
      mode: OneOf(DNS_MODES),
      published: Type.Boolean({ description: 'Whether a reading of the zone has shown the name.' }),
      healthy: Type.Boolean({ description: 'Whether the name leads to a healthy node.' }),
      lines: Type.Array(Type.Object({ name: Type.String(), target: Type.String() }), {
        description: 'Name of each DNS line, for visitors that should reach this line alone.',
      }),
      retired: Type.Array(Type.Object({ name: Type.String(), expiresAt: Timestamp }), {
        description: 'Earlier names that still work for a while.',
      }),
    }),
    errors: ['SITE_NOT_FOUND'],
  }),
});

export const dnsProviders = resource('dns.providers', {
  list: procedure({
    ...read,
    access: 'operator',
    method: 'GET',
    path: '/dns/providers',
    summary:
      'Lists accesses to DNS providers by name, without secrets. DNS credentials of certificates are among them.',
    input: Input({ ...SearchQuery('Part of the name or of the zone, case-insensitive.'), ...PageQuery(50) }),
    output: Page(DnsProvider),
    errors: [],
  }),
  create: procedure({
    ...write,
    access: 'operator',
    method: 'POST',
    path: '/dns/providers',
    summary: 'Stores an access to a zone at a DNS provider.',
    input: Input({ name: Name, provider: ProviderKey, zone: Zone, credentials: Credentials }),
    output: DnsProvider,
    status: 201,
    audit: 'dns_provider.create',
    errors: [],
  }),
  update: procedure({
    ...write,
    access: 'operator',
    method: 'PUT',
    path: '/dns/providers/{id}',
    summary: 'Changes the name of an access, and replaces all its credentials if given. Provider and zone stay.',
    input: Input({
      id: Id,
      name: Name,
      credentials: Type.Optional(Credentials),
      expectedUpdatedAt: ExpectedUpdatedAt,
    }),
    output: DnsProvider,
    audit: 'dns_provider.update',
    errors: ['DNS_PROVIDER_NOT_FOUND', 'UPDATED_AT_MISMATCH'],
  }),
  delete: procedure({
    ...write,
    access: 'operator',
    method: 'DELETE',
    path: '/dns/providers/{id}',
    summary: 'Deletes an access that no cluster and no certificate uses.',
    input: Input({ id: Id }),
    output: Empty,
    audit: 'dns_provider.delete',
    errors: ['DNS_PROVIDER_NOT_FOUND', 'DNS_PROVIDER_IN_USE'],
  }),
});

const MassRemovalRatio = Type.Number({
  minimum: 0.05,
  maximum: 1,
  default: 0.5,
  description: 'Share of the addresses of a cluster that one change may remove. A larger change is blocked.',
});

export const DnsProtection = Type.Object({ massRemovalRatio: MassRemovalRatio, updatedAt: Nullable(Timestamp) });
export type DnsProtection = Static<typeof DnsProtection>;

export const dnsProtection = resource(
  'dns.protection',
  settings({
    path: '/dns/protection',
    of: {},
    reads: 'Returns the settings of mass-removal protection.',
    saves: 'Saves the settings of mass-removal protection. Omitted fields take their defaults.',
    change: { massRemovalRatio: Type.Optional(MassRemovalRatio), expectedUpdatedAt: ExpectedUpdatedAt },
    output: DnsProtection,
    saved: DnsProtection,
    audit: 'dns.protection_update',
    saveErrors: ['UPDATED_AT_MISMATCH'],
  }),
);
