import type { AttentionEntries } from '../attention-entry.ts';
import { type ErrorEntries, entry } from '../error-entry.ts';
import type { ReasonEntries } from '../reason-entry.ts';

export const errors = {
  CLUSTER_NOT_FOUND: entry(404, 'There is no such cluster.'),
  CLUSTER_NAME_TAKEN: entry(409, 'Another cluster has this name.'),
  CLUSTER_NOT_EMPTY: entry(409, 'The cluster still has nodes or sites.'),
  NO_CLUSTER: entry(412, 'There is no cluster yet.'),
} satisfies ErrorEntries;

export const attention = {
  clusters_no_nodes: { order: 25, level: 'act', page: '/clusters' },
} satisfies AttentionEntries;

export const reasons = {
  cluster_created: 'Cluster created.',
} satisfies ReasonEntries;
