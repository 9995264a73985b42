import Type from 'typebox';
import { resource } from '../procedure.ts';
import { REDIRECT_WARNINGS, type RedirectWarningCode } from '../redirect-warnings.ts';
import { Decimal, ExpectedUpdatedAt, Id, Nullable, OneOf, Timestamp } from '../scalars/common.ts';
import { MAX_SOURCE_BYTES, MIN_SOURCE_BYTES, SOURCE_FORM } from '../scalars/redirect-source.ts';
import { settings } from '../settings.ts';

export const MAX_BULK_REDIRECTS = 5000;
export const MAX_TARGET_BYTES = 1024;
export const MAX_REDIRECT_WARNINGS = 100;

/** Statuses of a bulk redirect; the first is the default. */
export const BULK_REDIRECT_STATUSES = [301, 302, 307, 308] as const;
type Status = (typeof BULK_REDIRECT_STATUSES)[number];

const statusCode = {
  ...Type.Unsafe<Status>(Type.Union(BULK_REDIRECT_STATUSES.map((status) => Type.Literal(status)))),
  default: 301,
};
const preserveQuery = Type.Boolean({
  default: false,
  description: "Whether the request's query is appended to the target.",
});

const required = {
  source: Type.String({
    minLength: MIN_SOURCE_BYTES,
    maxLength: MAX_SOURCE_BYTES,
    pattern: SOURCE_FORM,
    examples: ['/old-shop'],
    description:
      '/path on any host of the site, or host/path with a lower-case host; 2 to 512 bytes. host/path wins ' +
      'if both match. Stored in canonical form: unnecessary escapes decoded, dot segments and repeated ' +
      'slashes resolved.',
  }),
  target: Type.String({
    minLength: 1,
    maxLength: MAX_TARGET_BYTES,
    examples: ['https://shop.example/'],
    description: 'Path with one leading slash, or HTTP(S) URL without credentials; at most 1024 bytes.',
  }),
};

export const BulkRedirect = Type.Object({ ...required, statusCode, preserveQuery });

const Item = Type.Object(
  { ...required, statusCode: Type.Optional(statusCode), preserveQuery: Type.Optional(preserveQuery) },
  { additionalProperties: false },
);

export const RedirectWarning = Type.Object({
  source: Type.String({ description: 'Source of the redirect.' }),
  code: OneOf(Object.keys(REDIRECT_WARNINGS) as RedirectWarningCode[], {
    description:
      'Stable warning code. loops: the redirect leads back to its own source, by itself or through others. ' +
      'fragment: the source was given with a literal #, which clients never send; only in responses to a save.',
  }),
  params: Type.Record(Type.String(), Type.String(), { description: 'Values inserted into the message, by name.' }),
  message: Type.String({ description: 'Warning in English.' }),
});

const ofSite = {
  siteId: Id,
  redirects: Type.Array(BulkRedirect, { maxItems: MAX_BULK_REDIRECTS, description: 'Sorted by source.' }),
  updatedAt: Timestamp,
  warnings: Type.Array(RedirectWarning, {
    maxItems: MAX_REDIRECT_WARNINGS,
    description: `Possible mistakes, at most ${MAX_REDIRECT_WARNINGS}. Warnings never reject a redirect.`,
  }),
};

export const BulkRedirects = Type.Object(ofSite);
export const SavedBulkRedirects = Type.Object({
  ...ofSite,
  revision: Nullable({ ...Decimal, description: 'Revision that publishes the change; null if nothing changed.' }),
});

/** The most redirects of the largest size, also where a JSON encoder escapes half of their characters. */
const BODY_LIMIT = 24 * 1024 * 1024;

export const bulkRedirects = resource('sites.bulkRedirects', {
  ...settings({
    path: '/sites/{id}/bulk-redirects',
    of: { id: Id },
    reads: 'Returns the bulk redirects of a site.',
    saves: 'Replaces the bulk redirects of a site. Nodes receive only the differences.',
    change: {
      redirects: Type.Array(Item, { maxItems: MAX_BULK_REDIRECTS, description: 'Each source only once.' }),
      expectedUpdatedAt: ExpectedUpdatedAt,
    },
    output: BulkRedirects,
    saved: SavedBulkRedirects,
    audit: 'site.bulk_redirects_update',
    bodyLimit: BODY_LIMIT,
    errors: ['SITE_NOT_FOUND'],
    saveErrors: ['BULK_REDIRECT_HOST_UNKNOWN', 'UPDATED_AT_MISMATCH'],
  }),
});
