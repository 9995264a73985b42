// Times in which alerts are recorded and not told: maintenance, or a failure that somebody is working on.
import Type, { type Static } from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Empty, Id, Input, Nullable, ONE_LINE, OneOf, Page, PageQuery, Timestamp } from '../scalars/common.ts';
import { ALERT_KINDS } from './alerts.ts';

export const MAX_SILENCES = 100;
export const MIN_SILENCE_SECONDS = 300;
export const MAX_SILENCE_SECONDS = 30 * 86_400;

const Kinds = Type.Array(OneOf(ALERT_KINDS), {
  maxItems: 64,
  uniqueItems: true,
  description: 'Alerts that are not sent; empty: all kinds of the resource.',
});
const Reason = Type.String({ minLength: 1, maxLength: 200, pattern: ONE_LINE, description: 'Why, for colleagues.' });

export const AlertSilence = Type.Object({
  id: Id,
  kinds: Kinds,
  resourceId: {
    ...Nullable(Id),
    description: 'ID of the site, node, cluster or certificate whose alerts are not sent; null: of all of them.',
  },
  resourceName: Type.String({ description: 'Its name as the silence began; empty: unknown, or all of them.' }),
  reason: Reason,
  createdBy: Type.String(),
  createdAt: Timestamp,
  endsAt: Timestamp,
});
export type AlertSilence = Static<typeof AlertSilence>;

export const alertSilences = resource('alerts.silences', {
  list: procedure({
    access: 'operator',
    idempotency: 'accepted',
    method: 'GET',
    path: '/alerts/silences',
    summary: 'Lists the silences that last, the next to end first.',
    input: Input({ ...PageQuery(50) }),
    output: Page(AlertSilence),
    status: 200,
    readOnly: true,
    audit: null,
    errors: [],
  }),
  create: procedure({
    access: 'operator',
    idempotency: 'accepted',
    method: 'POST',
    path: '/alerts/silences',
    summary: 'Silences alerts of some kinds, of a resource, or both, for up to 30 days.',
    input: Input({
      kinds: Type.Optional({ ...Kinds, default: [] }),
      resourceId: Type.Optional({ ...Id, description: 'ID of the site, node, cluster or certificate.' }),
      reason: Reason,
      durationSeconds: Type.Integer({
        minimum: MIN_SILENCE_SECONDS,
        maximum: MAX_SILENCE_SECONDS,
        description: 'Length of the silence in seconds.',
        examples: [7200],
      }),
    }),
    output: AlertSilence,
    status: 201,
    readOnly: false,
    audit: 'alert.silence_create',
    errors: ['ALERT_SILENCE_LIMIT'],
  }),
  delete: procedure({
    access: 'operator',
    idempotency: 'accepted',
    method: 'DELETE',
    path: '/alerts/silences/{id}',
    summary: 'Ends a silence. Alerts that are still open are sent.',
    input: Input({ id: Id }),
    output: Empty,
    status: 200,
    readOnly: false,
    audit: 'alert.silence_delete',
    errors: ['ALERT_SILENCE_NOT_FOUND'],
  }),
});
