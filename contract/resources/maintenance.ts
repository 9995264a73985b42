// Maintenance of a site: visitors get a page with 503, except for some.
import Type, { type Static } from 'typebox';
import { resource } from '../procedure.ts';
import { Decimal, Id, Nullable, Timestamp } from '../scalars/common.ts';
import { settings } from '../settings.ts';

export const MAX_MAINTENANCE_CIDRS = 64;
export const MAX_MAINTENANCE_PREFIXES = 32;
export const MAX_PREFIX_BYTES = 1024;
const MAX_RETRY_AFTER = 86_400;
/** Status of responses during maintenance. */
export const MAINTENANCE_STATUS = 503;

const fields = {
  enabled: Type.Boolean({ description: 'Whether the site is in maintenance.' }),
  template: Type.String({
    examples: ['<h1>Back at noon</h1>'],
    description:
      'HTML of the page, at most 65536 bytes, with the placeholders of error pages; empty: the page of the node.',
  }),
  retryAfterSeconds: Type.Integer({
    minimum: 0,
    maximum: MAX_RETRY_AFTER,
    examples: [600],
    description: 'Value of `Retry-After` in seconds; 0: no such header.',
  }),
  allowedCidrs: Type.Array(Type.String({ maxLength: 64, examples: ['203.0.113.0/24'] }), {
    maxItems: MAX_MAINTENANCE_CIDRS,
    description: 'Addresses and CIDRs of clients that still reach the site.',
  }),
  allowedPathPrefixes: Type.Array(
    Type.String({
      minLength: 1,
      maxLength: MAX_PREFIX_BYTES,
      pattern: '^/[^?#\\u0000-\\u001f\\u007f]*$',
      examples: ['/status'],
    }),
    {
      maxItems: MAX_MAINTENANCE_PREFIXES,
      description:
        'Beginnings of paths that still reach the site, percent-encoded or not, at most 1024 bytes each. A path ' +
        'with dot segments, double slashes or needless encoding is never exempt.',
    },
  ),
};

const Maintenance = Type.Object(fields);
export type Maintenance = Static<typeof Maintenance>;

/** What a site has until it is changed. */
export const DEFAULT_MAINTENANCE: Maintenance = {
  enabled: false,
  template: '',
  retryAfterSeconds: 0,
  allowedCidrs: [],
  allowedPathPrefixes: [],
};

const state = {
  siteId: Id,
  ...fields,
  updatedAt: { ...Nullable(Timestamp), description: 'null: never saved.' },
};

const { enabled, ...rest } = fields;
const given = Type.Partial(Type.Object(rest)).properties;

const both = settings({
  path: '/sites/{id}/maintenance',
  of: { id: Id },
  reads: 'Returns the maintenance settings of a site.',
  saves: 'Replaces all maintenance settings of a site; omitted fields return to their defaults.',
  change: {
    enabled,
    template: { ...given.template, default: DEFAULT_MAINTENANCE.template },
    retryAfterSeconds: { ...given.retryAfterSeconds, default: DEFAULT_MAINTENANCE.retryAfterSeconds },
    allowedCidrs: { ...given.allowedCidrs, default: DEFAULT_MAINTENANCE.allowedCidrs },
    allowedPathPrefixes: { ...given.allowedPathPrefixes, default: DEFAULT_MAINTENANCE.allowedPathPrefixes },
    expectedUpdatedAt: Type.Optional({ ...Nullable(Timestamp), description: 'null: never saved.' }),
  },
  output: Type.Object(state),
  saved: Type.Object({
    ...state,
    revision: Nullable({
      ...Decimal,
      description: 'Revision that publishes the change; null if nothing changed for nodes.',
    }),
  }),
  audit: 'site.maintenance_update',
  errors: ['SITE_NOT_FOUND'],
  saveErrors: ['ERROR_PAGE_TOO_LARGE', 'UPDATED_AT_MISMATCH'],
});

export const maintenance = resource('sites.maintenance', { get: both.get, update: both.set });
