// Pages that visitors get in the place of error responses: of a site, and of the platform.
import Type, { type Static } from 'typebox';
import { resource } from '../procedure.ts';
import { Decimal, Id, Nullable, Timestamp } from '../scalars/common.ts';
import { settings } from '../settings.ts';

export const MAX_TEMPLATE_BYTES = 65_536;
export const MAX_PAGE_REDIRECT = 4096;
/** In the order in which pages are listed. */
export const PAGE_STATUSES = [400, 401, 403, 404, 405, 410, 429, 500, 502, 503, 504, '4xx', '5xx'] as const;
export type PageStatus = (typeof PAGE_STATUSES)[number];
/** Thirteen templates, also where a JSON encoder escapes each character of HTML. */
const BODY_LIMIT = 6 * 1024 * 1024;

export const PAGE_VALUES = ['status', 'request_id', 'client_ip', 'host', 'time', 'path'] as const;

const Template = Type.String({
  minLength: 1,
  examples: ['<h1>{{status}}</h1><p>Request ID: {{request_id}}</p>'],
  description:
    'HTML, at most 65536 bytes. {{status}}, {{request_id}}, {{client_ip}}, {{host}}, {{time}} and {{path}} ' +
    'are replaced by the escaped values of the request. Scripts do not run.',
});

const Status = Type.Unsafe<PageStatus>(
  Type.Union(
    PAGE_STATUSES.map((status) => Type.Literal(status)),
    { description: 'Status of the error. 4xx and 5xx: each status of the class without a page.', examples: [404] },
  ),
);

const page = {
  status: Status,
  template: Type.Optional(Template),
  redirectUrl: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: MAX_PAGE_REDIRECT,
      examples: ['https://status.example.com/?id={{request_id}}'],
      description:
        'Instead of `template`: path or http(s) URL that visitors are redirected to, with status 302. {{status}} ' +
        'and {{request_id}} are replaced.',
    }),
  ),
  responseStatus: Type.Integer({
    anyOf: [{ const: 0 }, { minimum: 200 }],
    minimum: 0,
    maximum: 599,
    examples: [0],
    description:
      'Status that the template is sent with, 200 to 599. 0: the status of the error. Only 0 with a redirect.',
  }),
};

const ErrorPage = Type.Object(page);
export type ErrorPage = Static<typeof ErrorPage>;

const GivenPage = Type.Object(
  { ...page, responseStatus: Type.Optional({ ...page.responseStatus, default: 0 }) },
  {
    additionalProperties: false,
    description: 'Either a template or a redirect.',
    examples: [{ status: 404, template: '<h1>Not found</h1>', responseStatus: 0 }],
  },
);

const pages = {
  pages: Type.Array(ErrorPage, { description: 'Pages by status; other statuses have the page of the node.' }),
  interceptOriginErrors: Type.Boolean({
    description: 'Whether error responses of origins are replaced as well.',
  }),
};
const PagesOfSite = Type.Object(pages);
/** Pages of a site, sorted by status. */
export type PagesOfSite = Static<typeof PagesOfSite>;

/** What a site has until it is changed. */
export const DEFAULT_PAGES: PagesOfSite = { pages: [], interceptOriginErrors: false };

const state = {
  siteId: Id,
  ...pages,
  updatedAt: { ...Nullable(Timestamp), description: 'null: never saved.' },
};

const sitePages = settings({
  path: '/sites/{id}/error-pages',
  of: { id: Id },
  reads: 'Returns the error pages of a site.',
  saves: 'Replaces all error pages of a site; a site without a page for a status gets the page of the node.',
  change: {
    pages: Type.Array(GivenPage, { maxItems: PAGE_STATUSES.length, description: 'Pages, each status at most once.' }),
    interceptOriginErrors: Type.Optional({ ...pages.interceptOriginErrors, default: false }),
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
  audit: 'site.error_pages_update',
  bodyLimit: BODY_LIMIT,
  errors: ['SITE_NOT_FOUND'],
  saveErrors: ['ERROR_PAGE_TOO_LARGE', 'UPDATED_AT_MISMATCH'],
});

export const errorPages = resource('sites.errorPages', { get: sitePages.get, update: sitePages.set });

const platform = {
  unknownHost: Type.String({
    examples: ['<h1>No such website</h1>'],
    description: 'HTML for hosts that no site has, at most 65536 bytes; empty: the page of the node.',
  }),
  siteDisabled: Type.String({
    examples: [''],
    description: 'HTML for disabled sites, at most 65536 bytes; empty: the page of the node.',
  }),
};
const PlatformPages = Type.Object(platform);
export type PlatformPages = Static<typeof PlatformPages>;

export const DEFAULT_PLATFORM_PAGES: PlatformPages = { unknownHost: '', siteDisabled: '' };
/** Statuses that the pages of the platform are for. */
export const PLATFORM_STATUSES = { unknownHost: 404, siteDisabled: 503 } as const;

export const platformPages = resource(
  'settings.errorPages',
  settings({
    path: '/settings/error-pages',
    of: {},
    reads: 'Returns the error pages of all clusters.',
    saves: 'Changes the error pages of all clusters; omitted fields keep their values.',
    change: Type.Partial(PlatformPages).properties,
    output: PlatformPages,
    saved: PlatformPages,
    audit: 'system.error_pages_update',
    saveErrors: ['ERROR_PAGE_TOO_LARGE'],
  }),
);
