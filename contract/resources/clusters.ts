import Type from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Decimal, Empty, ExpectedUpdatedAt, Id, Input, Page, PageQuery, Timestamp } from '../scalars/common.ts';

export const ClusterName = Type.String({
  pattern: '^[a-z0-9][a-z0-9-]*$',
  maxLength: 64,
  description: 'Lower-case letters, digits and hyphens; unique.',
});
const Description = Type.String({ maxLength: 500 });

export const Cluster = Type.Object({
  id: Id,
  name: ClusterName,
  description: Description,
  nodeCount: Type.Integer({ minimum: 0 }),
  onlineNodeCount: Type.Integer({ minimum: 0, description: 'Heartbeat within 45 s.' }),
  liveNodeCount: Type.Integer({ minimum: 0, description: 'Online and enabled.' }),
  appliedNodeCount: Type.Integer({ minimum: 0, description: 'Live nodes that run their target revision.' }),
  siteCount: Type.Integer({ minimum: 0 }),
  latestRevision: Decimal,
  clientIpMode: Type.Union([Type.Literal('direct'), Type.Literal('proxy_protocol'), Type.Literal('header')]),
  createdAt: Timestamp,
  updatedAt: Timestamp,
});

export const clusters = resource('clusters', {
  list: procedure({
    method: 'GET',
    path: '/clusters',
    summary: 'Lists clusters by name.',
    input: Input({ ...PageQuery(50) }),
    output: Page(Cluster),
    status: 200,
    access: { scope: 'clusters:read' },
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: [],
  }),
  get: procedure({
    method: 'GET',
    path: '/clusters/{id}',
    summary: 'Answers one cluster.',
    input: Input({ id: Id }),
    output: Cluster,
    status: 200,
    access: { scope: 'clusters:read' },
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: ['CLUSTER_NOT_FOUND'],
  }),
  create: procedure({
    method: 'POST',
    path: '/clusters',
    summary: 'Creates a cluster with its default node group and its first revision.',
    input: Input({ name: ClusterName, description: Type.Optional({ ...Description, default: '' }) }),
    output: Cluster,
    status: 201,
    access: 'operator',
    readOnly: false,
    audit: 'cluster.create',
    idempotency: 'accepted',
    errors: ['CLUSTER_NAME_TAKEN'],
  }),
  update: procedure({
    method: 'PATCH',
    path: '/clusters/{id}',
    summary: 'Changes the name or the description of a cluster.',
    input: Input({
      id: Id,
      name: Type.Optional(ClusterName),
      description: Type.Optional(Description),
      expectedUpdatedAt: ExpectedUpdatedAt,
    }),
    output: Cluster,
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: 'cluster.update',
    idempotency: 'accepted',
    errors: ['CLUSTER_NOT_FOUND', 'CLUSTER_NAME_TAKEN', 'UPDATED_AT_MISMATCH'],
  }),
  delete: procedure({
    method: 'DELETE',
    path: '/clusters/{id}',
    summary: 'Deletes a cluster without nodes and sites.',
    input: Input({ id: Id }),
    output: Empty,
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: 'cluster.delete',
    idempotency: 'accepted',
    errors: ['CLUSTER_NOT_FOUND', 'CLUSTER_NOT_EMPTY'],
  }),
});
