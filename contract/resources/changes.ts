// Following a change home: how far a published revision or a ban has come.
import Type from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Id, Input, Nullable, OneOf, Page, PageQuery, Timestamp } from '../scalars/common.ts';
import { Author, Subject, Undoable } from './revisions.ts';

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
  id: Type.String({ description: 'Change ID, as in the header X-Svc-Change.' }),
  kind: Type.Union([Type.Literal('config'), Type.Literal('ban')]),
  clusterId: Nullable(Id),
  publishedAt: Timestamp,
  reason: Type.String({ description: 'Reason code of the revision, `ban_created` or `ban_lifted`.' }),
  actor: { ...Nullable(Author), description: 'Author of the change; null: no longer known.' },
  subject: Subject,
  undoable: Undoable,
  nodes: Type.Object({
    total: { ...Count, description: 'Active nodes that the change concerns.' },
    applied: { ...Count, description: 'Nodes that run this change or a later one.' },
    failed: { ...Count, description: 'Nodes that received the change but could not apply all of it.' },
    offline: { ...Count, description: 'Nodes that have not applied the change and are not connected.' },
  }),
  waiting: Type.Array(WaitingNode, {
    maxItems: 20,
    description: 'The first nodes that have not applied the change, online ones first.',
  }),
  firstAppliedAt: Nullable({
    ...Timestamp,
    description:
      'Time at which the first node applied the change. Later changes may replace it once nodes have moved on.',
  }),
  lastAppliedAt: Nullable(Timestamp),
  done: Type.Boolean({ description: 'Whether every online node has applied the change.' }),
});

const ChangeId = Type.String({
  maxLength: 120,
  pattern: '^(ban=[0-9]{1,18}:[0-9]{1,18}|[A-Za-z0-9-]{1,64}=[0-9]{1,18})$',
  description: '<cluster>=<revision> or ban=<epoch>:<seq>. Example: ban=1:42.',
});

export const Arrival = Type.Object({
  id: Id,
  name: Type.String(),
  online: Type.Boolean(),
  state: OneOf(['applied', 'failed', 'waiting']),
  reason: {
    ...Nullable(WaitingNode.properties.reason),
    description: 'Why the node has not applied the change; null: it has.',
  },
  appliedAt: {
    ...Nullable(Timestamp),
    description: 'Time at which the node applied the change. Later changes may replace it once the node has moved on.',
  },
});

/** Changes that one answer lists. */
export const LISTED_CHANGES = 20;

export const changes = resource('changes', {
  list: procedure({
    method: 'GET',
    path: '/changes',
    summary: `Lists the newest ${LISTED_CHANGES} saved changes of all clusters with their progress.`,
    input: Input({}),
    output: Type.Object({
      items: Type.Array(Change, {
        maxItems: LISTED_CHANGES,
        description: 'Newest first, without automatic bans.',
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
    summary: 'Lists the nodes that a change concerns, nodes that have not applied it first.',
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
    summary:
      'Returns the progress of a change. Its ID is <cluster>=<revision> or ban=<epoch>:<seq>, as in X-Svc-Change.',
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
