// Following a change home: how far a published revision or a ban has come.
import Type from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Id, Input, Nullable, OneOf, Page, PageQuery, Timestamp } from '../scalars/common.ts';
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

const ChangeId = Type.String({
  maxLength: 120,
  pattern: '^(ban=[0-9]{1,18}:[0-9]{1,18}|[A-Za-z0-9-]{1,64}=[0-9]{1,18})$',
  description: '<cluster>=<revision> or ban=<epoch>:<seq>.',
});

export const Arrival = Type.Object({
  id: Id,
  name: Type.String(),
  online: Type.Boolean(),
  state: OneOf(['applied', 'failed', 'waiting']),
  reason: { ...Nullable(WaitingNode.properties.reason), description: 'Why it has not applied it; null: it has.' },
  appliedAt: { ...Nullable(Timestamp), description: 'Moved by later changes once the node went on.' },
});

/** Changes that one answer lists. */
export const LISTED_CHANGES = 20;

export const changes = resource('changes', {
  list: procedure({
    method: 'GET',
    path: '/changes',
    summary: `Lists the newest ${LISTED_CHANGES} changes of all clusters that somebody saved, and how far each has come.`,
    input: Input({}),
    output: Type.Object({
      items: Type.Array(Change, {
        maxItems: LISTED_CHANGES,
        description: 'Newest first; without what nodes ban by themselves.',
      }),
    }),
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: [],
  }),
  nodes: procedure({
    method: 'GET',
    path: '/changes/{id}/nodes',
    summary: 'Lists the nodes that a change concerns, those that have not applied it first.',
    input: Input({ id: ChangeId, ...PageQuery(50) }),
    output: Page(Arrival),
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: ['CHANGE_NOT_FOUND'],
  }),
  get: procedure({
    method: 'GET',
    path: '/changes/{id}',
    summary: 'Tells how far a change has come: <cluster>=<revision> or ban=<epoch>:<seq>, as in X-Svc-Change.',
    input: Input({ id: ChangeId }),
    output: Change,
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: ['CHANGE_NOT_FOUND'],
  }),
});
