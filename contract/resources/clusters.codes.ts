import type { AttentionEntries } from '../attention-entry.ts';
import { type ErrorEntries, entry } from '../error-entry.ts';
import type { ReasonEntries } from '../reason-entry.ts';

export const errors = {
  CLUSTER_NOT_FOUND: entry(404, 'This cluster does not exist.'),
  CLUSTER_NAME_TAKEN: entry(409, 'Another cluster already has this `name`. Choose another one.'),
  CLUSTER_NOT_EMPTY: entry(409, 'The cluster still has nodes or sites. Delete or move them first.'),
  NO_CLUSTER: entry(412, 'No cluster exists yet. Create one first.'),
} satisfies ErrorEntries;

export const attention = {
  clusters_no_nodes: { order: 25, level: 'act', page: '/clusters' },
} satisfies AttentionEntries;

export const reasons = {
  cluster_created: 'Cluster created.',
} satisfies ReasonEntries;
