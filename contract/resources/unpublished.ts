// Saved settings that no node runs: what a rollback or the end of a canary left behind.
import Type from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Decimal, Id, Input, Nullable, Timestamp } from '../scalars/common.ts';
import { ObjectChange } from './revisions.ts';

const Count = Type.Integer({ minimum: 0 });
const Revision = { ...Nullable(Decimal), description: 'New revision; null: nodes already have these settings.' };

export const Unpublished = Type.Object({
  clusterId: Id,
  changes: Type.Array(ObjectChange, {
    description: 'Changed settings by kind, from what nodes run to what is saved; the next save publishes them.',
  }),
  discardable: Type.Boolean({
    description: 'Whether `discard` can restore what nodes run; false: nodes have never run the site.',
  }),
  cause: {
    ...Nullable(Type.Object({ revision: Decimal, reasonCode: Type.String(), createdAt: Timestamp })),
    description:
      'Latest rollback or end of a canary in the cluster; null: none is kept, or there are no such settings.',
  },
});

const reads = {
  method: 'GET',
  status: 200,
  readOnly: true,
  audit: null,
  idempotency: 'accepted',
  input: Input({ id: Id }),
  output: Unpublished,
} as const;

const changes = {
  method: 'POST',
  status: 200,
  readOnly: false,
  idempotency: 'accepted',
  input: Input({ id: Id }),
} as const;

const Published = Type.Object({ revision: Revision });
const Discarded = Type.Object({
  revision: Revision,
  restoredFields: { ...Count, description: 'Number of fields that were restored to what nodes run.' },
});

export const unpublishedOfSite = resource('sites', {
  unpublished: procedure({
    ...reads,
    access: 'operator',
    path: '/sites/{id}/unpublished',
    summary: 'Returns the saved settings of a site that no node runs.',
    errors: ['SITE_NOT_FOUND'],
  }),
  publishUnpublished: procedure({
    ...changes,
    access: 'operator',
    path: '/sites/{id}/unpublished/publish',
    summary: 'Publishes the saved settings of a site that no node runs; with canaries, starts one.',
    output: Published,
    audit: 'site.unpublished_publish',
    errors: ['SITE_NOT_FOUND'],
  }),
  discardUnpublished: procedure({
    ...changes,
    access: 'operator',
    path: '/sites/{id}/unpublished/discard',
    summary: 'Restores the saved settings of a site to what nodes run.',
    output: Discarded,
    audit: 'site.unpublished_discard',
    errors: ['SITE_NOT_FOUND', 'ROLLBACK_RESOURCE_UNAVAILABLE'],
  }),
});

export const unpublishedOfCluster = resource('clusters', {
  unpublished: procedure({
    ...reads,
    access: 'operator',
    path: '/clusters/{id}/unpublished',
    summary: 'Returns the saved settings of a cluster, without its sites, that no node runs.',
    errors: ['CLUSTER_NOT_FOUND'],
  }),
  publishUnpublished: procedure({
    ...changes,
    access: 'operator',
    path: '/clusters/{id}/unpublished/publish',
    summary: 'Publishes the saved settings of a cluster that no node runs; with canaries, starts one.',
    output: Published,
    audit: 'cluster.unpublished_publish',
    errors: ['CLUSTER_NOT_FOUND'],
  }),
  discardUnpublished: procedure({
    ...changes,
    access: 'operator',
    path: '/clusters/{id}/unpublished/discard',
    summary: 'Restores the saved settings of a cluster to what nodes run.',
    output: Discarded,
    audit: 'cluster.unpublished_discard',
    errors: ['CLUSTER_NOT_FOUND', 'ROLLBACK_RESOURCE_UNAVAILABLE'],
  }),
});
