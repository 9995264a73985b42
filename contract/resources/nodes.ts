import Type from 'typebox';
import { procedure, resource } from '../procedure.ts';
import {
  Decimal,
  Empty,
  ExpectedUpdatedAt,
  Id,
  Input,
  Nullable,
  Page,
  PageQuery,
  SortQuery,
  Timestamp,
} from '../scalars/common.ts';
import { NodeCache } from './cache-zone.ts';

/** What lists of nodes can be sorted by; a node that reported none of it counts as the least. */
export const NODE_SORT = ['name', 'lastSeenAt', 'cpuPercent', 'memoryPercent'] as const;

const NodeName = Type.String({ minLength: 1, maxLength: 64, pattern: '^\\S(.*\\S)?$' });
const Count = Type.Integer({ minimum: 0 });

export const NodeMetrics = Type.Object({
  cpuPercent: Type.Number(),
  load1: Type.Number(),
  load5: Type.Number(),
  load15: Type.Number(),
  memoryUsedBytes: Count,
  memoryTotalBytes: Count,
  egressBps: Count,
  activeConnections: Count,
  reportedAt: Timestamp,
});

/** Points of the history of metrics: 24 hours of five minutes. */
export const METRICS_POINTS = 288;

const MetricsHistory = Type.Object({
  from: { ...Timestamp, description: 'Start of the first point. The last point is the current, incomplete one.' },
  stepSeconds: Type.Integer({ minimum: 1, description: 'Length of one point in seconds.' }),
  points: Type.Array(
    Nullable(
      Type.Object({
        cpuPercent: Type.Number(),
        load1: Type.Number(),
        memoryUsedBytes: Count,
        memoryTotalBytes: Count,
        egressBps: Count,
        activeConnections: Count,
      }),
    ),
    { description: `Averages, oldest first, ${METRICS_POINTS} of them; null: the node reported none.` },
  ),
});

export const NodeBanStatus = Type.Object({
  epoch: { ...Decimal, description: 'Epoch of the ban feed that the sequence belongs to.' },
  appliedSequence: { ...Decimal, description: 'Sequence number of the latest ban feed change that the node applied.' },
  entries: Count,
  capacity: Count,
  unapplied: Type.Integer({ minimum: 0, description: 'Manual bans that the node could not apply.' }),
  unappliedIds: Type.Array(Type.String(), { description: 'IDs of these bans, at most 100.' }),
  kernelEntries: Nullable(Count),
  autoEvicted: Count,
  reportedAt: Timestamp,
});

export const NodeFailedEntry = Type.Object({
  kind: Type.String(),
  id: Type.String(),
  running: Type.Boolean({ description: 'Whether an earlier version of the entry is still in use.' }),
  reason: Type.String(),
});

const GeoipDatabase = Type.Object({
  state: Type.Union([Type.Literal('ready'), Type.Literal('unavailable')], {
    description: 'unavailable: requests whose rules read its fields receive 503 policy-unavailable.',
  }),
  builtAt: Nullable({ ...Timestamp, description: 'Build time that the database itself states.' }),
  problem: Type.String({
    description: 'Why the database is missing or a newer file was rejected; "" if there is no problem.',
  }),
});

export const NodeGeoip = Type.Object(
  { country: GeoipDatabase, asn: GeoipDatabase },
  { description: 'GeoIP databases of the node; null until the node has reported them.' },
);

/** Addresses that can be configured of one node. */
export const MAX_NODE_ADDRESSES = 8;

const AddressLevel = Type.Integer({
  minimum: 0,
  maximum: 2,
  description: '0: primary; 1 and 2: used in DNS while no address of a lower level can be reached.',
});

const SchedulingAddress = Type.Object({
  address: Type.String(),
  level: AddressLevel,
  source: Type.Union([Type.Literal('reported'), Type.Literal('configured')]),
  reachable: Type.Boolean(),
});

export const Node = Type.Object({
  id: Id,
  name: Type.String(),
  clusterId: Id,
  clusterName: Type.String(),
  nodeGroupId: Id,
  nodeGroupName: Type.String(),
  regionName: Nullable(Type.String()),
  status: Type.Union([Type.Literal('active'), Type.Literal('disabled')]),
  online: Type.Boolean({ description: 'Whether the node sent a heartbeat in the last 45 s.' }),
  lastSeenAt: Nullable(Timestamp),
  enrolledAt: Timestamp,
  updatedAt: Timestamp,
  hostname: Type.String(),
  agentVersion: Type.String(),
  engine: Type.String(),
  engineVersion: Type.String(),
  os: Type.String(),
  arch: Type.String(),
  ipAddresses: Type.Array(Type.String(), { description: 'Interface addresses that the node reported, at most 64.' }),
  remoteAddress: Nullable(
    Type.String({ description: 'Source address of the last heartbeat; behind a proxy, the address of the proxy.' }),
  ),
  schedulingAddresses: Type.Array(SchedulingAddress, {
    description:
      'Addresses that DNS gives to visitors: the configured ones, or else the public ones that the node reported.',
  }),
  schedulingLevel: { ...AddressLevel, description: 'Level of the addresses in use.' },
  dnsIssue: Nullable(
    Type.Literal('no_public_address', {
      description: 'Why the node cannot be in DNS: it has no address for visitors.',
    }),
  ),
  supportedFeatures: Type.Array(Type.String()),
  upgradeRequired: Type.Boolean({
    description: 'Whether the configuration of the cluster needs a capability that the node lacks.',
  }),
  missingFeatures: Type.Array(Type.String()),
  certFingerprint: Nullable(Type.String({ description: 'SHA-256 of the newest certificate in hexadecimal.' })),
  certNotAfter: Nullable(Timestamp),
  authError: Nullable(
    Type.String({
      description:
        'Why the node channel rejected the certificate of the node since its last heartbeat. `OVER_BUDGET_` with a lane: it rejected calls of the node in the last minute.',
    }),
  ),
  targetRevision: Decimal,
  appliedRevision: Nullable(Decimal),
  appliedContentHash: Nullable(Type.String({ description: 'Hash of the applied revision in hexadecimal.' })),
  applyState: Type.Union([Type.Literal('applying'), Type.Literal('applied'), Type.Literal('failed')]),
  applyMessage: Type.String(),
  failedEntries: Type.Array(NodeFailedEntry, { description: 'Entries that the node could not apply, at most 100.' }),
  dataPlaneHealthy: Type.Boolean(),
  banStatus: Nullable(NodeBanStatus),
  metrics: Nullable(NodeMetrics),
  cache: NodeCache,
  geoip: Nullable(NodeGeoip),
});

const write = { status: 200, readOnly: false, idempotency: 'accepted' } as const;
const read = { status: 200, readOnly: true, audit: null, idempotency: 'accepted' } as const;

export const nodes = resource('nodes', {
  list: procedure({
    ...read,
    access: 'operator',
    method: 'GET',
    path: '/nodes',
    summary: 'Lists nodes, by name unless sorted otherwise.',
    input: Input({
      clusterId: Type.Optional(Id),
      nodeGroupId: Type.Optional(Id),
      status: Type.Optional(Type.Union([Type.Literal('active'), Type.Literal('disabled')])),
      online: Type.Optional(Type.Boolean()),
      search: Type.Optional(
        Type.String({ maxLength: 100, description: 'Part of the name, the host name or the remote address.' }),
      ),
      lacks: Type.Optional(
        Type.String({
          pattern: '^[a-z0-9-]{1,64}$',
          description: 'Capability: lists nodes that do not report it, including nodes that never reported.',
        }),
      ),
      ...SortQuery(NODE_SORT),
      ...PageQuery(50),
    }),
    output: Page(Node),
    errors: [],
  }),
  get: procedure({
    ...read,
    access: 'operator',
    method: 'GET',
    path: '/nodes/{id}',
    summary: 'Returns a node.',
    input: Input({ id: Id }),
    output: Node,
    errors: ['NODE_NOT_FOUND'],
  }),
  metrics: procedure({
    ...read,
    access: 'operator',
    method: 'GET',
    path: '/nodes/{id}/metrics',
    summary: 'Returns the machine metrics that a node with metrics-v1 reported in the last 24 hours.',
    input: Input({ id: Id }),
    output: MetricsHistory,
    errors: ['NODE_NOT_FOUND'],
  }),
  update: procedure({
    ...write,
    access: 'operator',
    method: 'PATCH',
    path: '/nodes/{id}',
    summary: 'Renames a node or moves it to another group of its cluster.',
    input: Input({
      id: Id,
      name: Type.Optional(NodeName),
      nodeGroupId: Type.Optional(Id),
      expectedUpdatedAt: ExpectedUpdatedAt,
    }),
    output: Node,
    audit: ['node.update', 'node.move'],
    errors: ['NODE_NOT_FOUND', 'NODE_GROUP_NOT_FOUND', 'NODE_GROUP_CLUSTER_MISMATCH', 'UPDATED_AT_MISMATCH'],
  }),
  setAddresses: procedure({
    ...write,
    access: 'operator',
    method: 'PUT',
    path: '/nodes/{id}/addresses',
    summary: 'Replaces the configured addresses of a node. Without any, DNS uses the public ones that it reports.',
    input: Input({
      id: Id,
      addresses: Type.Array(
        Input({
          address: Type.String({
            minLength: 1,
            maxLength: 64,
            description: 'Single unicast address; private ones may be.',
          }),
          level: AddressLevel,
        }),
        { maxItems: MAX_NODE_ADDRESSES, description: 'One of them has level 0. Empty: reported addresses are used.' },
      ),
      expectedUpdatedAt: ExpectedUpdatedAt,
    }),
    output: Node,
    audit: 'node.addresses_update',
    errors: ['NODE_NOT_FOUND', 'NODE_ADDRESS_INVALID', 'UPDATED_AT_MISMATCH'],
  }),
  disable: procedure({
    ...write,
    access: 'operator',
    method: 'POST',
    path: '/nodes/{id}/disable',
    summary: 'Disables a node. It keeps serving its configuration and can only renew its certificate.',
    input: Input({ id: Id, expectedUpdatedAt: ExpectedUpdatedAt }),
    output: Node,
    audit: 'node.disable',
    errors: ['NODE_NOT_FOUND', 'UPDATED_AT_MISMATCH'],
  }),
  enable: procedure({
    ...write,
    access: 'operator',
    method: 'POST',
    path: '/nodes/{id}/enable',
    summary: 'Enables a disabled node.',
    input: Input({ id: Id, expectedUpdatedAt: ExpectedUpdatedAt }),
    output: Node,
    audit: 'node.enable',
    errors: ['NODE_NOT_FOUND', 'UPDATED_AT_MISMATCH'],
  }),
  delete: procedure({
    ...write,
    access: 'operator',
    method: 'DELETE',
    path: '/nodes/{id}',
    summary: 'Deletes a node and revokes its certificates.',
    input: Input({ id: Id }),
    output: Empty,
    audit: 'node.delete',
    errors: ['NODE_NOT_FOUND'],
  }),
});
