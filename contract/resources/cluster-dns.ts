// DNS of one cluster: which names its nodes and sites have, where they are written, and what became of each change.
import Type, { type Static } from 'typebox';
import { procedure, resource } from '../procedure.ts';
import {
  Decimal,
  ExpectedUpdatedAt,
  Id,
  Input,
  Nullable,
  OneOf,
  Page,
  PageQuery,
  Timestamp,
} from '../scalars/common.ts';
import { RESOLUTION_LINES } from '../scalars/resolution-line.ts';
import { DNS_MODES } from './dns.ts';
import { Author } from './revisions.ts';

export const MAX_DNS_LINES = 128;
/** Records of one binding. */
export const MAX_DNS_RECORDS = 10_000;
/** Differences that are returned of one revision. */
export const MAX_DNS_DIFFERENCES = 100;
export const DNS_STATUSES = ['pending', 'applied', 'failed', 'superseded', 'blocked'] as const;
export type DnsStatus = (typeof DNS_STATUSES)[number];
export const DNS_REASONS = ['manual', 'health', 'rollback', 'force', 'scheduling'] as const;
export type DnsReason = (typeof DNS_REASONS)[number];

const Count = Type.Integer({ minimum: 0 });
const Address = Type.String({ maxLength: 64 });
const ResolutionLine = OneOf(RESOLUTION_LINES, {
  description: 'Visitors that the line is for, by their network. The provider must support it.',
});

const LineName = Type.String({
  pattern: '^[a-z0-9]+(-+[a-z0-9]+)*$',
  maxLength: 32,
  description: 'Label of the line below the domain; unique, not `all`.',
});
const Override = Input({
  nodeId: Id,
  addresses: Type.Array(Address, { minItems: 1, maxItems: 8, description: 'Addresses of the node in this line.' }),
});
const line = {
  name: LineName,
  nodeGroupId: { ...Id, description: 'Node group whose nodes the line leads to. A group belongs to one line.' },
};
const overrides = Type.Array(Override, { maxItems: 1000, description: 'Other addresses of some nodes.' });
const backupNodeGroupIds = Type.Array(Id, {
  maxItems: 4,
  uniqueItems: true,
  description:
    'Groups that take over, in this order, while the group has fewer than `minHealthyIps` healthy addresses.',
});
const minHealthyIps = Type.Integer({
  minimum: 1,
  maximum: 64,
  description: 'Fewest healthy addresses, below which backup groups take over.',
});

export const DnsLine = Type.Object({
  ...line,
  overrides,
  resolutionLine: ResolutionLine,
  backupNodeGroupIds,
  minHealthyIps,
});
export type DnsLine = Static<typeof DnsLine>;

const GivenLine = Input({
  ...line,
  overrides: Type.Optional({ ...overrides, default: [] }),
  resolutionLine: Type.Optional({ ...ResolutionLine, default: 'default' }),
  backupNodeGroupIds: Type.Optional({ ...backupNodeGroupIds, default: [] }),
  minHealthyIps: Type.Optional({ ...minHealthyIps, default: 1 }),
});

const mode = OneOf(DNS_MODES, {
  description: 'off: no names; manual: the console says which records are needed; auto: the console writes them.',
});
const providerId = { ...Nullable(Id), description: 'Access that writes the records; required for auto.' };
const domain = Type.String({
  maxLength: 180,
  description: 'Domain below which the names are; inside the zone of the access. Required unless the mode is off.',
});
const ttl = Type.Integer({
  minimum: 30,
  maximum: 3600,
  description: 'Seconds that resolvers may keep a record.',
});
const lineAliases = Type.Boolean({ description: 'Whether each site also has a name for each line.' });

export const DnsBinding = Type.Object({
  mode,
  providerId,
  zone: { ...Nullable(Type.String()), description: 'Zone of the access.' },
  domain,
  ttl,
  lines: Type.Array(DnsLine, { maxItems: MAX_DNS_LINES }),
  lineAliases,
  allLabel: Type.String({
    description: 'Label of the name that leads to all lines: `all`, or `all-2` if it is taken.',
  }),
  updatedAt: Nullable(Timestamp),
});
export type DnsBinding = Static<typeof DnsBinding>;

const given = {
  mode: Type.Optional({ ...mode, default: 'off' }),
  providerId: Type.Optional({ ...providerId, default: null }),
  domain: Type.Optional({ ...domain, default: '' }),
  ttl: Type.Optional({ ...ttl, default: 600 }),
  lines: Type.Optional(Type.Array(GivenLine, { maxItems: MAX_DNS_LINES, default: [] })),
  lineAliases: Type.Optional({ ...lineAliases, default: false }),
};

export const DnsRecord = Type.Object({
  name: Type.String({ description: 'Whole name, without a dot at the end.' }),
  type: OneOf(['A', 'AAAA', 'CNAME']),
  data: Type.String(),
  ttl: Count,
  line: Type.Optional(OneOf(RESOLUTION_LINES, { description: 'Absent for the default line.' })),
  owner: OneOf(['all', 'line', 'site'], { description: 'Owner of the name.' }),
  ownerId: Nullable(Type.String({ description: 'Name of the line, or ID of the site.' })),
  ownerName: Nullable(Type.String({ description: 'Name of the line or of the site.' })),
  nodeName: { ...Nullable(Type.String()), description: 'Node that has the address.' },
  healthy: { ...Nullable(Type.Boolean()), description: 'Whether that node is healthy; null for a CNAME.' },
});
export type DnsRecord = Static<typeof DnsRecord>;

export const DnsDifference = Type.Object({
  name: Type.String(),
  type: OneOf(['A', 'AAAA', 'CNAME']),
  line: Type.Optional(OneOf(RESOLUTION_LINES)),
  before: Type.Array(Type.String(), { description: 'Values before the change.' }),
  after: Type.Array(Type.String(), { description: 'Values after the change.' }),
});
export type DnsDifference = Static<typeof DnsDifference>;

const differences = {
  difference: Type.Array(DnsDifference, {
    description: `Changes of the records, of at most ${MAX_DNS_DIFFERENCES} names. Names of sites follow the sites and are not listed.`,
  }),
  differenceTotal: Count,
};

export const DnsProblem = Type.Object({
  code: Type.String({ description: 'Error code.' }),
  name: Nullable(Type.String({ description: 'Name concerned.' })),
  detail: Type.String({ description: 'Text of the provider; "" if there is none.' }),
  at: Timestamp,
});
export type DnsProblem = Static<typeof DnsProblem>;

export const ClusterDns = Type.Object({
  binding: DnsBinding,
  revision: { ...Nullable(Decimal), description: 'Newest DNS revision; null: none yet.' },
  applied: { ...Nullable(Decimal), description: 'DNS revision that the zone has; null: none yet.' },
  records: Type.Array(DnsRecord, { description: `Records that the zone should have, at most ${MAX_DNS_RECORDS}.` }),
  blocked: {
    ...Nullable(
      Type.Object({
        revision: Decimal,
        removedRecords: { ...Count, description: 'Number of addresses that it would remove.' },
        previousRecords: { ...Count, description: 'Number of addresses before it.' },
        ...differences,
      }),
    ),
    description: 'Change that mass-removal protection holds; null: none.',
  },
  problem: { ...Nullable(DnsProblem), description: 'Why the records could not be written; null: they were.' },
  conflicts: Type.Array(Type.String(), {
    description: 'Names that other records have in the zone. The console leaves these alone. At most 100.',
  }),
  checkedAt: { ...Nullable(Timestamp), description: 'When a reading of the zone last showed all records.' },
});
export type ClusterDns = Static<typeof ClusterDns>;

export const DnsRevision = Type.Object({
  revision: Decimal,
  status: OneOf(DNS_STATUSES),
  reason: OneOf(DNS_REASONS),
  reasonParams: Type.Record(Type.String(), Type.Unknown()),
  actor: Author,
  mode,
  domain,
  addresses: { ...Count, description: 'Number of addresses in its records.' },
  removedRecords: Count,
  previousRecords: Count,
  ...differences,
  problem: Nullable(DnsProblem),
  createdAt: Timestamp,
  appliedAt: Nullable(Timestamp),
});
export type DnsRevision = Static<typeof DnsRevision>;

const read = { status: 200, readOnly: true, audit: null, idempotency: 'accepted' } as const;
const write = { status: 200, readOnly: false, idempotency: 'accepted' } as const;
const Published = Type.Object({
  revision: { ...Nullable(Decimal), description: 'DNS revision of the change; null: no record changes.' },
  binding: DnsBinding,
});
const BINDING_ERRORS = [
  'CLUSTER_NOT_FOUND',
  'DNS_PROVIDER_NOT_FOUND',
  'NODE_GROUP_NOT_FOUND',
  'NODE_NOT_FOUND',
  'NODE_ADDRESS_INVALID',
  'DNS_ZONE_MISMATCH',
  'DNS_LINE_UNSUPPORTED',
  'DNS_POLICY_INVALID',
  'DNS_BINDING_CONFLICT',
] as const;

export const clusterDns = resource('dns.binding', {
  get: procedure({
    ...read,
    access: 'operator',
    method: 'GET',
    path: '/clusters/{id}/dns',
    summary: 'Returns the DNS of a cluster: its settings, records and state.',
    input: Input({ id: Id }),
    output: ClusterDns,
    errors: ['CLUSTER_NOT_FOUND'],
  }),
  set: procedure({
    ...write,
    access: 'operator',
    method: 'PUT',
    path: '/clusters/{id}/dns',
    summary: 'Saves the DNS settings of a cluster. Omitted fields take their defaults.',
    input: Input({ id: Id, ...given, expectedUpdatedAt: ExpectedUpdatedAt }),
    output: Published,
    audit: 'cluster.dns_update',
    errors: [...BINDING_ERRORS, 'UPDATED_AT_MISMATCH'],
  }),
  preview: procedure({
    ...write,
    access: 'operator',
    method: 'POST',
    path: '/clusters/{id}/dns/preview',
    summary: 'Returns the records that DNS settings would lead to now. Saves nothing.',
    input: Input({ id: Id, ...given }),
    output: Type.Object({
      records: Type.Array(DnsRecord),
      ...differences,
      blocked: Type.Boolean({ description: 'Whether mass-removal protection would hold the change.' }),
      replaced: Type.Array(Type.String(), {
        description: 'Names whose records change between addresses and CNAME. Such a name has no record for a moment.',
      }),
      ttl: { ...Count, description: 'TTL that the provider will write.' },
    }),
    audit: null,
    errors: [...BINDING_ERRORS],
  }),
  export: procedure({
    ...read,
    access: 'operator',
    method: 'GET',
    path: '/clusters/{id}/dns/export',
    summary: 'Returns the records of a cluster, also as a zone file.',
    input: Input({ id: Id }),
    output: Type.Object({
      origin: Type.String({ description: 'Domain that the names of the file are relative to.' }),
      records: Type.Array(DnsRecord),
      zoneFile: Type.String({ description: 'The same in the format of BIND; records of other lines are comments.' }),
    }),
    errors: ['CLUSTER_NOT_FOUND'],
  }),
  revisions: procedure({
    ...read,
    access: 'operator',
    method: 'GET',
    path: '/clusters/{id}/dns/revisions',
    summary: 'Lists the DNS revisions of a cluster, newest first.',
    input: Input({ id: Id, ...PageQuery(50) }),
    output: Page(DnsRevision),
    errors: ['CLUSTER_NOT_FOUND'],
  }),
  rollback: procedure({
    ...write,
    access: 'operator',
    method: 'POST',
    path: '/clusters/{id}/dns/revisions/{revision}/rollback',
    summary: 'Restores the DNS settings of a revision. Addresses are those that are healthy now.',
    input: Input({ id: Id, revision: Decimal }),
    output: Published,
    audit: 'cluster.dns_rollback',
    errors: [...BINDING_ERRORS, 'DNS_REVISION_NOT_FOUND'],
  }),
  force: procedure({
    ...write,
    access: 'operator',
    method: 'POST',
    path: '/clusters/{id}/dns/force-publish',
    summary: 'Publishes a change that mass-removal protection holds.',
    input: Input({ id: Id, revision: { ...Decimal, description: 'The blocked DNS revision.' } }),
    output: Published,
    audit: 'cluster.dns_force',
    errors: ['CLUSTER_NOT_FOUND', 'DNS_NOT_BLOCKED'],
  }),
});
