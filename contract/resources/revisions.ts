// Published revisions of a cluster, as people see them.
import Type from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Decimal, Id, Input, Nullable, OneOf, Timestamp } from '../scalars/common.ts';

export const Author = Type.Object({ type: Type.String(), id: Nullable(Type.String()), name: Type.String() });
export const Subject = {
  ...Nullable(
    Type.Object({
      type: OneOf(['site', 'ip_list', 'cluster', 'ban']),
      id: Nullable(Id),
      name: Type.String({ description: 'As of then; of a ban, its range.' }),
      exists: Type.Boolean({ description: 'Whether it is still there; a ban: in force.' }),
    }),
  ),
  description: 'What was changed; null: settings of the whole installation.',
};

export const Revision = Type.Object({
  clusterId: Id,
  revision: Decimal,
  contentHash: Type.String({ description: 'Hash of the published set, 64 hexadecimal digits.' }),
  entryCount: Type.Integer({ minimum: 0 }),
  reasonCode: Type.String(),
  reasonParams: Type.Record(Type.String(), Type.Unknown()),
  actor: Author,
  subject: Subject,
  changed: Type.Array(Type.Object({ kind: Type.String(), id: Type.String() }), {
    maxItems: 100,
    description: 'Entries of the configuration that the revision changed; the first 100.',
  }),
  createdAt: Timestamp,
});

export const revisions = resource('clusters', {
  revisions: procedure({
    method: 'GET',
    path: '/clusters/{id}/revisions',
    summary: 'Lists the latest 20 published revisions of a cluster, newest first.',
    input: Input({ id: Id }),
    output: Type.Object({ items: Type.Array(Revision, { maxItems: 20 }) }),
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: ['CLUSTER_NOT_FOUND'],
  }),
});
