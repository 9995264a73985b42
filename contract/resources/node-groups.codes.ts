import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  NODE_GROUP_NOT_FOUND: entry(404, 'This node group does not exist.'),
  NODE_GROUP_NAME_TAKEN: entry(409, 'The cluster already has a node group with this `name`. Choose another one.'),
  NODE_GROUP_IS_DEFAULT: entry(409, 'The default node group cannot be deleted.'),
  NODE_GROUP_CLUSTER_MISMATCH: entry(400, 'The node group belongs to another cluster. Choose one of the same cluster.'),
} satisfies ErrorEntries;
