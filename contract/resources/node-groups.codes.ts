import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  NODE_GROUP_NOT_FOUND: entry(404, 'There is no such node group.'),
  NODE_GROUP_NAME_TAKEN: entry(409, 'The cluster has another group of this name.'),
  NODE_GROUP_IS_DEFAULT: entry(409, 'The default group cannot be deleted.'),
  NODE_GROUP_CLUSTER_MISMATCH: entry(400, 'The group belongs to another cluster.'),
} satisfies ErrorEntries;
