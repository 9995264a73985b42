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
  entryCount: Count,
  siteCount: { ...Count, description: 'Sites that nodes serve with it: the enabled ones.' },
  canaryOnly: Type.Boolean({ description: 'Only the nodes of a canary got it; the others have what was before it.' }),
  reason: Type.String({ description: 'What happened, in English; clients translate reasonCode.' }),
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

/** Revisions of a cluster that people see. */
export const LISTED_REVISIONS = 200;
/** Sites named in each list of a preview. */
export const NAMED_SITES = 100;

const RevisionNumber = Type.String({ pattern: '^[0-9]{1,18}$', description: 'Number of a revision.' });

/** Fields of an object named in a difference. */
export const SHOWN_FIELDS = 200;

export const FieldChange = Type.Object({
  path: Type.String({ description: 'Dotted, elements of lists by their number: origins.0.address.' }),
  from: Type.Optional(Type.Unknown({ description: 'Absent: there was none.' })),
  to: Type.Optional(Type.Unknown({ description: 'Absent: there is none.' })),
});

export const ObjectChange = Type.Object({
  kind: Type.String({ description: 'Kind of the entry: site, protection, client-ip, …' }),
  id: { ...Type.String(), description: 'Of the site or list that it belongs to; empty: of the cluster.' },
  subject: Subject,
  change: OneOf(['added', 'changed', 'removed']),
  settingsKnown: Type.Boolean({
    description: 'Whether settings are kept with entries of the kind. Without, fields is empty whatever changed.',
  }),
  fields: Type.Array(FieldChange, {
    maxItems: SHOWN_FIELDS,
    description: `What differs; of what is added or removed, from the defaults. The first ${SHOWN_FIELDS}.`,
  }),
});
export type ObjectChange = Static<typeof ObjectChange>;

const PreviewedSite = Type.Object({ id: Id, name: Type.String() });
const PreviewedSites = Type.Array(PreviewedSite, { maxItems: NAMED_SITES });

const restoreSettings = Type.Optional(
  Type.Boolean({
    default: false,
    description: 'Puts saved settings back as well, so that the next save does not bring back what is taken away.',
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
  access: 'operator',
  readOnly: true,
  audit: null,
  idempotency: 'accepted',
} as const;

export const revisions = resource('clusters', {
  revisions: procedure({
    ...reads,
    path: '/clusters/{id}/revisions',
    summary: `Lists the latest ${LISTED_REVISIONS} published revisions of a cluster, newest first.`,
    input: Input({ id: Id, ...PageQuery(50) }),
    output: Page(Revision),
    errors: ['CLUSTER_NOT_FOUND'],
  }),
  revisionDiff: procedure({
    ...reads,
    path: '/clusters/{id}/revisions/{revision}/diff',
    summary: 'Lists what differs in the settings of two revisions, by object and field.',
    input: Input({
      id: Id,
      revision: RevisionNumber,
      against: Type.Optional({
        ...RevisionNumber,
        description: 'The revision to compare from; the one before, unless given. 0: before the first.',
      }),
      ...PageQuery(50),
    }),
    output: Page(ObjectChange),
    errors: ['CLUSTER_NOT_FOUND', 'REVISION_NOT_FOUND'],
  }),
  rollbackPreview: procedure({
    ...reads,
    path: '/clusters/{id}/rollback-preview',
    summary: 'Tells what a rollback to a revision would do, or refuses as it would; writes nothing.',
    input: Input({ id: Id, revision: RevisionNumber, restoreSettings }),
    output: Type.Object({
      revision: Decimal,
      currentRevision: { ...Nullable(Decimal), description: 'null: the cluster has none.' },
      unchanged: Type.Boolean({ description: 'Nodes run what the rollback would publish.' }),
      sites: Type.Object({
        added: { ...PreviewedSites, description: 'Served again.' },
        changed: PreviewedSites,
        removed: { ...PreviewedSites, description: 'Not served any more: made or enabled since.' },
      }),
      siteCounts: Type.Object({ added: Count, changed: Count, removed: Count }),
      keptDisabled: {
        ...PreviewedSites,
        description: 'Sites that the revision serves and that stay as they are, because they are disabled now.',
      },
      entryCount: { ...Count, description: 'Entries that the rollback changes.' },
      settings: Type.Object(
        {
          total: Count,
          items: Type.Array(ObjectChange, {
            maxItems: NAMED_SITES,
            description: 'From what is saved to what would be.',
          }),
        },
        {
          description:
            'Saved settings that differ from those of the revision. Without restoreSettings they stay, and the next save publishes them.',
        },
      ),
    }),
    errors: rollbackErrors,
  }),
  rollback: procedure({
    method: 'POST',
    path: '/clusters/{id}/rollback',
    summary: 'Publishes what an earlier revision had as a new one.',
    input: Input({
      id: Id,
      revision: RevisionNumber,
      restoreSettings,
      note: Type.Optional(
        Type.String({
          maxLength: 200,
          pattern: ONE_LINE,
          description: 'Why, for the list of revisions and the audit.',
        }),
      ),
    }),
    output: Type.Object({
      revision: { ...Nullable(Decimal), description: 'The revision it made; null: nodes have what it had.' },
      restoredSettings: { ...Count, description: 'Sites and other things whose settings were put back.' },
    }),
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: 'cluster.rollback',
    idempotency: 'accepted',
    errors: rollbackErrors,
  }),
});
