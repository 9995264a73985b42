// Published revisions of a cluster, as people see them.
import Type, { type Static } from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Decimal, Id, Input, Nullable, ONE_LINE, OneOf, Page, PageQuery, Timestamp } from '../scalars/common.ts';

const Count = Type.Integer({ minimum: 0 });

export const Author = Type.Object({ type: Type.String(), id: Nullable(Type.String()), name: Type.String() });
export const Subject = {
  ...Nullable(
    Type.Object({
      type: OneOf(['site', 'ip_list', 'cluster', 'ban']),
      id: Nullable(Id),
      name: Type.String({ description: 'Name at that time; for a ban, its range.' }),
      exists: Type.Boolean({ description: 'Whether the object still exists; for a ban, whether it is in force.' }),
    }),
  ),
  description: 'Changed object; null: settings of the whole installation.',
};

export const Undoable = Type.Boolean({
  description:
    'Whether the revision saved settings that `undo` can restore. Undo is still refused if a later change affects the ' +
    'same fields.',
});

export const Revision = Type.Object({
  clusterId: Id,
  revision: Decimal,
  contentHash: Type.String({ description: 'Hash of the published set, 64 hexadecimal digits.' }),
  entryCount: Count,
  siteCount: { ...Count, description: 'Number of enabled sites in the revision.' },
  canaryOnly: Type.Boolean({
    description: 'Whether only canary nodes received the revision. The others kept the one before.',
  }),
  reason: Type.String({ description: 'Reason in English; translate `reasonCode` instead.' }),
  reasonCode: Type.String(),
  reasonParams: Type.Record(Type.String(), Type.Unknown()),
  actor: Author,
  subject: Subject,
  changed: Type.Array(Type.Object({ kind: Type.String(), id: Type.String() }), {
    maxItems: 100,
    description: 'Entries that the revision changed, the first 100.',
  }),
  undoable: Undoable,
  createdAt: Timestamp,
});

/** Revisions of a cluster that people see. */
export const LISTED_REVISIONS = 200;
/** Sites named in each list of a preview. */
export const NAMED_SITES = 100;

const RevisionNumber = Type.String({ pattern: '^[0-9]{1,18}$', description: 'Revision number. Example: 42.' });

/** Fields of an object named in a difference. */
export const SHOWN_FIELDS = 200;

export const FieldChange = Type.Object({
  path: Type.String({ description: 'Dotted path; list elements by index. Example: origins.0.address.' }),
  from: Type.Optional(Type.Unknown({ description: 'Value before; absent: none.' })),
  to: Type.Optional(Type.Unknown({ description: 'Value after; absent: none.' })),
});

export const ObjectChange = Type.Object({
  kind: Type.String({ description: 'Kind of the entry, for example site, protection or client-ip.' }),
  id: { ...Type.String(), description: 'ID of the site or list that the entry belongs to; empty: the cluster.' },
  subject: Subject,
  change: OneOf(['added', 'changed', 'removed']),
  settingsKnown: Type.Boolean({
    description: 'Whether settings of this kind of entry are stored. If not, `fields` is always empty.',
  }),
  fields: Type.Array(FieldChange, {
    maxItems: SHOWN_FIELDS,
    description: `Changed fields, for an added or removed object compared with the defaults; the first ${SHOWN_FIELDS}.`,
  }),
});
export type ObjectChange = Static<typeof ObjectChange>;

const PreviewedSite = Type.Object({ id: Id, name: Type.String() });
const PreviewedSites = Type.Array(PreviewedSite, { maxItems: NAMED_SITES });

const restoreSettings = Type.Optional(
  Type.Boolean({
    default: false,
    description:
      'Whether to restore the saved settings as well. Otherwise the next save publishes the present ' +
      'settings again.',
  }),
);

const rollbackErrors = [
  'CLUSTER_NOT_FOUND',
  'REVISION_NOT_FOUND',
  'ROLLBACK_RESOURCE_UNAVAILABLE',
  'ROLLBACK_TOO_LARGE',
] as const;

const reads = {
  method: 'GET',
  status: 200,
  readOnly: true,
  audit: null,
  idempotency: 'accepted',
} as const;

export const revisions = resource('clusters', {
  revisions: procedure({
    ...reads,
    access: 'operator',
    path: '/clusters/{id}/revisions',
    summary: `Lists the latest ${LISTED_REVISIONS} published revisions of a cluster, newest first.`,
    input: Input({ id: Id, ...PageQuery(50) }),
    output: Page(Revision),
    errors: ['CLUSTER_NOT_FOUND'],
  }),
  revisionDiff: procedure({
    ...reads,
    access: 'operator',
    path: '/clusters/{id}/revisions/{revision}/diff',
    summary: 'Lists the changed settings between two revisions, by object and field.',
    input: Input({
      id: Id,
      revision: RevisionNumber,
      against: Type.Optional({
        ...RevisionNumber,
        description: 'Revision to compare with. Default: the one before. 0: before the first.',
      }),
      ...PageQuery(50),
    }),
    output: Page(ObjectChange),
    errors: ['CLUSTER_NOT_FOUND', 'REVISION_NOT_FOUND'],
  }),
  rollbackPreview: procedure({
    ...reads,
    access: 'operator',
    path: '/clusters/{id}/rollback-preview',
    summary: 'Previews a rollback to a revision and returns the same errors as the rollback; changes nothing.',
    input: Input({ id: Id, revision: RevisionNumber, restoreSettings }),
    output: Type.Object({
      revision: Decimal,
      currentRevision: { ...Nullable(Decimal), description: 'null: the cluster has no revision.' },
      unchanged: Type.Boolean({
        description:
          'Whether all nodes already run the result of the rollback; false while a canary runs, which it ends.',
      }),
      sites: Type.Object({
        added: { ...PreviewedSites, description: 'Sites that are served again.' },
        changed: PreviewedSites,
        removed: {
          ...PreviewedSites,
          description: 'Sites that are no longer served, because they were created or enabled later.',
        },
      }),
      siteCounts: Type.Object({ added: Count, changed: Count, removed: Count }),
      keptDisabled: {
        ...PreviewedSites,
        description: 'Sites that the revision serves but that stay disabled, because they are disabled now.',
      },
      entryCount: { ...Count, description: 'Number of entries that the rollback changes.' },
      settings: Type.Object(
        {
          total: Count,
          items: Type.Array(ObjectChange, {
            maxItems: NAMED_SITES,
            description: 'Changes from the saved to the restored settings.',
          }),
        },
        {
          description:
            'Saved settings that differ from the revision. Without `restoreSettings` they stay, and the next ' +
            'save publishes them.',
        },
      ),
    }),
    errors: rollbackErrors,
  }),
  rollback: procedure({
    method: 'POST',
    path: '/clusters/{id}/rollback',
    summary: 'Publishes the configuration of an earlier revision as a new revision.',
    input: Input({
      id: Id,
      revision: RevisionNumber,
      restoreSettings,
      note: Type.Optional(
        Type.String({
          maxLength: 200,
          pattern: ONE_LINE,
          description: 'Reason, shown in the list of revisions and in the audit log.',
        }),
      ),
    }),
    output: Type.Object({
      revision: { ...Nullable(Decimal), description: 'New revision; null: nodes already have this configuration.' },
      restoredSettings: { ...Count, description: 'Number of sites and other objects with restored settings.' },
    }),
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: 'cluster.rollback',
    idempotency: 'accepted',
    errors: rollbackErrors,
  }),
  undoRevision: procedure({
    method: 'POST',
    path: '/clusters/{id}/revisions/{revision}/undo',
    summary: 'Undoes a revision: restores the saved settings that it changed, and publishes them as a save does.',
    input: Input({ id: Id, revision: RevisionNumber }),
    output: Type.Object({
      revision: { ...Nullable(Decimal), description: 'New revision; null: nodes already have these settings.' },
      restoredFields: { ...Count, description: 'Number of restored fields; 0: they had their earlier values already.' },
    }),
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: 'revision.undo',
    idempotency: 'accepted',
    errors: [
      'CLUSTER_NOT_FOUND',
      'REVISION_NOT_FOUND',
      'UNDO_UNAVAILABLE',
      'UNDO_CHANGED_LATER',
      'ROLLBACK_RESOURCE_UNAVAILABLE',
      'ROLLBACK_TOO_LARGE',
    ],
  }),
});
