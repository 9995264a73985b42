// Disk space that nodes use for stored responses.
import Type, { type Static } from 'typebox';
import { resource } from '../procedure.ts';
import { Decimal, Id, Nullable, Timestamp } from '../scalars/common.ts';
import { settings } from '../settings.ts';
import { LackingNode } from './client-ip.ts';

export const MAX_SIZE_GB = 65_536;
export const MAX_INACTIVE_DAYS = 90;

const size = {
  minimum: 1,
  maximum: MAX_SIZE_GB,
  description: 'Largest size of the cache of a node, in GiB. Above it, nodes evict the least recently used responses.',
};
const zone = {
  maxSizeGb: Type.Integer({ ...size, default: 10 }),
  inactiveDays: Type.Integer({
    minimum: 1,
    maximum: MAX_INACTIVE_DAYS,
    default: 7,
    description: 'Days without a request after which nodes remove a stored response.',
  }),
};

export const CacheZone = Type.Object(zone);
export type CacheZone = Static<typeof CacheZone>;
export const DEFAULT_CACHE_ZONE: CacheZone = { maxSizeGb: 10, inactiveDays: 7 };

const OwnSize = Nullable(
  Type.Integer({ ...size, description: 'Largest size of the cache of this node, in GiB; null: that of the cluster.' }),
);
const bytes = Type.Integer({ minimum: 0 });

/** What node objects show. */
export const NodeCache = Type.Object({
  maxSizeGb: OwnSize,
  usage: Nullable(
    Type.Object(
      { usedBytes: bytes, maxBytes: bytes, measuredAt: Timestamp },
      { description: 'Disk space in use, in bytes; null until the node reports it.' },
    ),
  ),
});

const ofCluster = {
  ...zone,
  unsupportedNodes: Type.Array(LackingNode, {
    description: 'Active nodes without the capability cache-zone-v1, at most 100.',
  }),
};
const ofNode = {
  maxSizeGb: OwnSize,
  clusterMaxSizeGb: Type.Integer({ description: 'Size that the cluster sets, in GiB.' }),
};
const revision = Nullable(Decimal);

export const clusterCache = resource(
  'clusters.cache',
  settings({
    path: '/clusters/{clusterId}/cache',
    of: { clusterId: Id },
    reads: 'Returns the disk space that each node of a cluster uses for its cache.',
    saves: 'Sets the disk space that each node of a cluster uses for its cache.',
    change: { maxSizeGb: Type.Optional(zone.maxSizeGb), inactiveDays: Type.Optional(zone.inactiveDays) },
    output: Type.Object(ofCluster),
    saved: Type.Object({ ...ofCluster, revision }),
    audit: 'cluster.cache_update',
    errors: ['CLUSTER_NOT_FOUND'],
  }),
);

export const nodeCache = resource(
  'nodes.cache',
  settings({
    path: '/nodes/{id}/cache',
    of: { id: Id },
    reads: 'Returns the disk space that a node uses for its cache.',
    saves: 'Gives a node a cache size of its own, or that of its cluster. Needs the capability `cache-zone-v1`.',
    change: { maxSizeGb: OwnSize },
    output: Type.Object(ofNode),
    saved: Type.Object({ ...ofNode, revision }),
    audit: 'node.cache_update',
    errors: ['NODE_NOT_FOUND'],
  }),
);
