// Following a change home: how far a published revision or a ban has come.
import Type from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Id, Input, Nullable, Timestamp } from '../scalars/common.ts';
import { Author, Subject } from './revisions.ts';

const Count = Type.Integer({ minimum: 0 });

export const WaitingNode = Type.Object({
  id: Id,
  name: Type.String(),
  online: Type.Boolean(),
  reason: Type.Union([
    Type.Literal('offline'),
    Type.Literal('never_connected'),
    Type.Literal('behind'),
    Type.Literal('capability_missing'),
    Type.Literal('data_plane_unhealthy'),
    Type.Literal('entry_failed'),
    Type.Literal('ban_unapplied'),
  ]),
});

export const Change = Type.Object({
  id: Type.String({ description: 'As in the header X-Svc-Change.' }),
  kind: Type.Union([Type.Literal('config'), Type.Literal('ban')]),
  clusterId: Nullable(Id),
  publishedAt: Timestamp,
  reason: Type.String({ description: 'Reason code of the revision; ban_created or ban_lifted.' }),
  actor: { ...Nullable(Author), description: 'Who made it; null: not known any more.' },
  subject: Subject,
  nodes: Type.Object({
    total: { ...Count, description: 'Active nodes concerned.' },
    applied: { ...Count, description: 'They run the change, or something later.' },
    failed: { ...Count, description: 'They received the change and could not put all of it to work.' },
    offline: { ...Count, description: 'They have not applied it and are not connected.' },
  }),
  waiting: Type.Array(WaitingNode, {
    maxItems: 20,
    description: 'The first nodes that have not applied it, online ones first.',
  }),
  firstAppliedAt: Nullable({ ...Timestamp, description: 'Moved by later changes once nodes went on.' }),
  lastAppliedAt: Nullable(Timestamp),
  done: Type.Boolean({ description: 'Every online node has applied it.' }),
});

export const changes = resource('changes', {
  get: procedure({
    method: 'GET',
    path: '/changes/{id}',
    summary: 'Tells how far a change has come: <cluster>=<revision> or ban=<epoch>:<seq>, as in X-Svc-Change.',
    input: Input({
      id: Type.String({
        maxLength: 120,
        pattern: '^(ban=[0-9]{1,18}:[0-9]{1,18}|[A-Za-z0-9-]{1,64}=[0-9]{1,18})$',
        description: '<cluster>=<revision> or ban=<epoch>:<seq>.',
      }),
    }),
    output: Change,
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: ['CHANGE_NOT_FOUND'],
  }),
});
