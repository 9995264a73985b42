import Type from 'typebox';
import { procedure, resource } from '../procedure.ts';
import {
  Decimal,
  Input,
  Nullable,
  OneOf,
  Page,
  PageQuery,
  SearchQuery,
  SortQuery,
  Timestamp,
} from '../scalars/common.ts';
import { settings } from '../settings.ts';

export const ACTOR_TYPES = ['user', 'api_key', 'service_account', 'node', 'probe', 'system', 'anonymous'] as const;

/** What the audit log can be sorted by. */
export const AUDIT_SORT = ['occurredAt'] as const;

export const MIN_AUDIT_DAYS = 30;
export const MAX_AUDIT_DAYS = 3650;
export const DEFAULT_AUDIT_DAYS = 3650;

export const ActorType = OneOf(ACTOR_TYPES, {
  description:
    'user: the operator in a console session. api_key: the operator with an access key. system: the ' +
    'console itself. anonymous: a client that is not signed in, for example after a rejected sign-in.',
});
const Word = Type.String({ minLength: 1, maxLength: 64, pattern: '^[a-z0-9_.]+$' });

export const AuditEntry = Type.Object({
  id: Decimal,
  occurredAt: Timestamp,
  actorType: ActorType,
  actorId: Nullable(Type.String()),
  actorName: Nullable(Type.String()),
  ip: Nullable(Type.String({ description: 'Client address.' })),
  userAgent: Nullable(Type.String()),
  action: Type.String(),
  targetType: Nullable(Type.String()),
  targetId: Nullable(Type.String()),
  targetName: Nullable(Type.String({ description: 'Name at that time; it stays after the target is deleted.' })),
  targetExists: {
    ...Nullable(Type.Boolean()),
    description: 'Whether the site, node, cluster or IP list still exists; null for other target types.',
  },
  metadata: Type.Record(Type.String(), Type.Unknown(), { description: 'Parameters of the action, never secrets.' }),
});

export const auditLogs = resource('auditLogs', {
  list: procedure({
    method: 'GET',
    path: '/audit-logs',
    summary: 'Lists audit entries, newest first unless sorted otherwise.',
    input: Input({
      action: Type.Optional({ ...Word, description: 'Exact action, for example `site.update`.' }),
      targetType: Type.Optional({ ...Word, description: 'Exact target type, for example `site`.' }),
      actorType: Type.Optional(ActorType),
      actor: SearchQuery("Part of the actor's name, case-insensitive.").search,
      targetId: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 64,
          description: 'Exact target ID; use it together with `targetType`.',
        }),
      ),
      from: Type.Optional({ ...Timestamp, description: 'Entries at or after this time.' }),
      to: Type.Optional({ ...Timestamp, description: 'Entries before this time; not before `from`.' }),
      ...SortQuery(AUDIT_SORT),
      ...PageQuery(50),
    }),
    output: Page(AuditEntry),
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: [],
  }),
  facets: procedure({
    method: 'GET',
    path: '/audit-logs/facets',
    summary: 'Lists the actions, target types and actor types that occur in the audit log.',
    input: Input({}),
    output: Type.Object({
      actions: Type.Array(Type.String()),
      targetTypes: Type.Array(Type.String()),
      actorTypes: Type.Array(ActorType),
    }),
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: [],
  }),
});

const retention = {
  days: Type.Integer({
    minimum: MIN_AUDIT_DAYS,
    maximum: MAX_AUDIT_DAYS,
    description: 'Days that audit entries are kept; older ones are deleted within 1 hour.',
  }),
};

export const auditRetention = resource(
  'settings.auditRetention',
  settings({
    path: '/settings/audit-retention',
    of: {},
    reads: 'Returns how many days audit entries are kept.',
    saves: 'Sets how many days audit entries are kept.',
    change: retention,
    output: Type.Object(retention),
    saved: Type.Object(retention),
    audit: 'system.audit_retention_update',
  }),
);
