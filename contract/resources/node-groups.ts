import Type from 'typebox';
import { procedure, resource } from '../procedure.ts';
import {
  Empty,
  ExpectedUpdatedAt,
  Id,
  Input,
  Nullable,
  Page,
  PageQuery,
  SearchQuery,
  Timestamp,
} from '../scalars/common.ts';

const GroupName = Type.String({ minLength: 1, maxLength: 64, pattern: '^\\S(.*\\S)?$' });

export const NodeGroup = Type.Object({
  id: Id,
  clusterId: Id,
  name: Type.String({ description: 'Unique in the cluster.' }),
  isDefault: Type.Boolean({
    description: 'Whether new nodes join this group unless they name another one. The default group cannot be deleted.',
  }),
  isCanary: Type.Boolean({
    description:
      'Whether the nodes of the group are canary nodes, which run changes before the others; see ' +
      '`canaryInEffect`.',
  }),
  canaryInEffect: Type.Boolean({
    description: 'Whether canary groups receive changes first: the rollout policy of the cluster has canaries enabled.',
  }),
  regionId: Nullable(Id),
  regionName: Nullable(Type.String()),
  regionCode: Nullable(Type.String()),
  nodeCount: Type.Integer({ minimum: 0 }),
  createdAt: Timestamp,
  updatedAt: Timestamp,
});

export const nodeGroups = resource('nodeGroups', {
  list: procedure({
    method: 'GET',
    path: '/node-groups',
    summary: 'Lists node groups by name, of one cluster or of all.',
    input: Input({
      clusterId: Type.Optional(Id),
      ...SearchQuery('Part of the name, case-insensitive.'),
      ...PageQuery(50),
    }),
    output: Page(NodeGroup),
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: [],
  }),
  create: procedure({
    method: 'POST',
    path: '/node-groups',
    summary: 'Creates a node group in a cluster.',
    input: Input({
      clusterId: Id,
      name: GroupName,
      isCanary: Type.Optional(
        Type.Boolean({ default: false, description: 'Whether its nodes are canary nodes; see `canaryInEffect`.' }),
      ),
      regionId: Type.Optional(Nullable(Id)),
    }),
    output: NodeGroup,
    status: 201,
    access: 'operator',
    readOnly: false,
    audit: 'node_group.create',
    idempotency: 'accepted',
    errors: ['CLUSTER_NOT_FOUND', 'REGION_NOT_FOUND', 'NODE_GROUP_NAME_TAKEN'],
  }),
  update: procedure({
    method: 'PATCH',
    path: '/node-groups/{id}',
    summary: 'Changes a node group.',
    input: Input({
      id: Id,
      name: Type.Optional(GroupName),
      isCanary: Type.Optional(
        Type.Boolean({ description: 'Whether its nodes are canary nodes; see `canaryInEffect`.' }),
      ),
      regionId: Type.Optional(Nullable(Id)),
      expectedUpdatedAt: ExpectedUpdatedAt,
    }),
    output: NodeGroup,
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: 'node_group.update',
    idempotency: 'accepted',
    errors: ['NODE_GROUP_NOT_FOUND', 'REGION_NOT_FOUND', 'NODE_GROUP_NAME_TAKEN', 'UPDATED_AT_MISMATCH'],
  }),
  delete: procedure({
    method: 'DELETE',
    path: '/node-groups/{id}',
    summary: 'Deletes a node group; its nodes move to the default group of the cluster.',
    input: Input({ id: Id }),
    output: Empty,
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: 'node_group.delete',
    idempotency: 'accepted',
    errors: ['NODE_GROUP_NOT_FOUND', 'NODE_GROUP_IS_DEFAULT', 'DNS_BINDING_IN_USE'],
  }),
});
