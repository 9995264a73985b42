import Type, { type Static, type TProperties, type TSchema } from 'typebox';
import { resource } from '../procedure.ts';
import { Decimal, ExpectedUpdatedAt, Id, Nullable, OneOf, Timestamp } from '../scalars/common.ts';
import { settings } from '../settings.ts';
import { CERTIFICATE_SOURCES, CERTIFICATE_STATUSES } from './certificates.ts';

/** Certificates of a site beside the first. */
export const MAX_ADDITIONAL_CERTIFICATES = 3;
export const MAX_EXCLUDED_DOMAINS = 50;
export const MAX_COMPRESSION_TYPES = 32;
export const MAX_MIN_LENGTH = 1_048_576;
export const MAX_CLIENT_CA_PEM = 65_536;
export const MAX_CLIENT_CAS = 10;
/** Two years. */
export const MAX_HSTS_AGE = 63_072_000;

/** Statuses of the redirect to HTTPS; the first is the default. */
export const HTTPS_REDIRECT_STATUSES = [301, 302, 303, 307, 308] as const;
type Status = (typeof HTTPS_REDIRECT_STATUSES)[number];
export const TLS_VERSIONS = ['1.2', '1.3'] as const;
export const CIPHER_PROFILES = ['modern', 'compatible'] as const;
export const CLIENT_CERTIFICATE_MODES = ['off', 'optional', 'required'] as const;

const clientCertificate = {
  mode: OneOf(CLIENT_CERTIFICATE_MODES, {
    description: 'optional: clients may send one; required: others get 403. Not together with HTTP/3.',
  }),
  caPem: Type.String({
    maxLength: MAX_CLIENT_CA_PEM,
    description: 'Authorities whose certificates count, 1 to 10 in PEM; may be empty while off.',
  }),
  depth: Type.Integer({
    minimum: 1,
    maximum: 5,
    description: 'Most certificates between that of the client and its authority, neither of the two counted.',
  }),
  forwardHeaders: Type.Boolean({ description: 'Whether origins are told of the certificate.' }),
};

const https = {
  certificateId: { ...Nullable(Id), description: 'Certificate of the site; null: HTTP only.' },
  additionalCertificateIds: Type.Array(Id, {
    maxItems: MAX_ADDITIONAL_CERTIFICATES,
    uniqueItems: true,
    description:
      'Others, for more domains or another type of key: of those that cover a name clients get the best that they support.',
  }),
  forceHttps: Type.Boolean({ description: 'Whether plain requests are redirected; needs a certificate.' }),
  redirectStatus: Type.Unsafe<Status>(Type.Union(HTTPS_REDIRECT_STATUSES.map((status) => Type.Literal(status)))),
  redirectPort: Type.Integer({ minimum: 1, maximum: 65_535, description: '443 or an HTTPS port of the site.' }),
  redirectExcludedDomains: Type.Array(Type.String({ minLength: 1, maxLength: 1024 }), {
    maxItems: MAX_EXCLUDED_DOMAINS,
    description: 'Domains of the site that are not redirected.',
  }),
  hstsMaxAge: Type.Integer({
    minimum: 0,
    maximum: MAX_HSTS_AGE,
    description: 'Seconds for which browsers use HTTPS alone; 0: they are not told.',
  }),
  hstsIncludeSubdomains: Type.Boolean(),
  hstsPreload: Type.Boolean(),
  minimumVersion: OneOf(TLS_VERSIONS, { description: 'Oldest version of TLS.' }),
  cipherProfile: OneOf(CIPHER_PROFILES, {
    description:
      'Of TLS 1.2 only, that of TLS 1.3 is fixed. modern: ECDHE with AES128-GCM and CHACHA20; compatible: AES256-GCM too.',
  }),
  http2: Type.Boolean(),
  http3: Type.Boolean({ description: 'Whether clients are told that HTTP/3 is there.' }),
  ocspStapling: Type.Boolean({ description: 'Whether nodes send along what the authority says of the certificate.' }),
};

const coding = (name: string, minimum: number, maximum: number, note = '') => ({
  [name]: Type.Boolean({ description: `Whether answers are compressed with ${name}.` }),
  [`${name}Level`]: Type.Integer({ minimum, maximum, ...(note === '' ? {} : { description: note }) }),
  [`${name}MinLength`]: Type.Integer({
    minimum: 1,
    maximum: MAX_MIN_LENGTH,
    description: 'Shortest answer that is compressed, bytes.',
  }),
  [`${name}Types`]: Type.Array(
    Type.String({
      minLength: 3,
      maxLength: 127,
      pattern: '^[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+$',
      examples: ['text/css'],
    }),
    { maxItems: MAX_COMPRESSION_TYPES, description: 'Media types that are compressed, without parameters.' },
  ),
});

type Coding<N extends string> = { [K in N]: Type.TBoolean } & {
  [K in `${N}Level` | `${N}MinLength`]: Type.TInteger;
} & {
  [K in `${N}Types`]: Type.TArray<Type.TString>;
};

const compression = {
  ...(coding('gzip', 0, 9, '0: what nodes find best.') as Coding<'gzip'>),
  ...(coding('brotli', 1, 11) as Coding<'brotli'>),
  ...(coding('zstd', 1, 19) as Coding<'zstd'>),
  compressMaxLength: Type.Integer({
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    description: 'Longest answer that is compressed, bytes; 0: any.',
  }),
};

const ClientCertificate = Type.Object(clientCertificate);
const HttpsPart = Type.Object({ ...https, clientCertificate: ClientCertificate });
const CompressionPart = Type.Object(compression);

/** How a site is reached over TLS. */
export type HttpsSettings = Static<typeof HttpsPart>;
/** How its answers are compressed. */
export type CompressionSettings = Static<typeof CompressionPart>;

const TYPES = [
  'text/html',
  'text/plain',
  'text/css',
  'text/javascript',
  'application/javascript',
  'application/json',
  'image/svg+xml',
];
const MIN_LENGTH = 256;

/** What a site has until it is changed, and a save has where it says nothing. */
export const DEFAULT_HTTPS: HttpsSettings = {
  certificateId: null,
  additionalCertificateIds: [],
  forceHttps: false,
  redirectStatus: 301,
  redirectPort: 443,
  redirectExcludedDomains: [],
  hstsMaxAge: 0,
  hstsIncludeSubdomains: false,
  hstsPreload: false,
  minimumVersion: '1.2',
  cipherProfile: 'modern',
  http2: true,
  http3: false,
  ocspStapling: false,
  clientCertificate: { mode: 'off', caPem: '', depth: 2, forwardHeaders: false },
};
export const DEFAULT_COMPRESSION: CompressionSettings = {
  gzip: true,
  gzipLevel: 0,
  gzipMinLength: MIN_LENGTH,
  gzipTypes: TYPES,
  brotli: false,
  brotliLevel: 6,
  brotliMinLength: MIN_LENGTH,
  brotliTypes: TYPES,
  zstd: false,
  zstdLevel: 3,
  zstdMinLength: MIN_LENGTH,
  zstdTypes: TYPES,
  compressMaxLength: 0,
};

/** The same fields where each may be left out, with what it is then. */
function given<P extends TProperties>(fields: P, defaults: object) {
  const optional = Object.entries(fields).map(([name, schema]) => [
    name,
    Type.Optional({ ...schema, default: (defaults as Record<string, unknown>)[name] } as TSchema),
  ]);
  return Object.fromEntries(optional) as { [K in keyof P]: Type.TOptional<P[K]> };
}

const Given = Type.Object(
  {
    ...given(https, DEFAULT_HTTPS),
    ...given(compression, DEFAULT_COMPRESSION),
    clientCertificate: Type.Optional(
      Type.Object(given(clientCertificate, DEFAULT_HTTPS.clientCertificate), { additionalProperties: false }),
    ),
  },
  { additionalProperties: false, description: 'All of them: what is left out goes back to its default.' },
);

const state = {
  siteId: Id,
  settings: Type.Object({ ...https, clientCertificate: ClientCertificate, ...compression }),
  certificates: Type.Array(
    Type.Object({
      id: Id,
      name: Type.String(),
      names: Type.Array(Type.String()),
      source: OneOf(CERTIFICATE_SOURCES),
      status: OneOf(CERTIFICATE_STATUSES, { description: 'Of its last issue.' }),
      notAfter: Nullable(Timestamp),
    }),
    { description: 'Those of the settings, in their order.' },
  ),
  pendingDomains: Type.Array(Type.String(), {
    description:
      'Domains that no certificate covers yet: they are reached by plain HTTP alone until it is issued anew.',
  }),
  updatedAt: Timestamp,
};

export const SiteHttps = Type.Object(state);
export const SavedSiteHttps = Type.Object({
  ...state,
  revision: Nullable({ ...Decimal, description: 'Revision that publishes the change; null when nothing differs.' }),
});

export const siteHttps = resource('sites.https', {
  ...settings({
    path: '/sites/{id}/https',
    of: { id: Id },
    reads: 'Answers how a site is reached over HTTPS, and how its answers are compressed.',
    saves: 'Replaces all HTTPS and compression settings of a site; missing fields take their defaults.',
    change: { settings: Given, expectedUpdatedAt: ExpectedUpdatedAt },
    output: SiteHttps,
    saved: SavedSiteHttps,
    audit: 'site.https_update',
    errors: ['SITE_NOT_FOUND'],
    saveErrors: [
      'CERTIFICATE_NOT_FOUND',
      'CERTIFICATE_UNAVAILABLE',
      'CERTIFICATE_DOMAIN_MISMATCH',
      'HTTPS_REQUIRES_CERTIFICATE',
      'HTTPS_REDIRECT_PORT_INVALID',
      'SITE_HTTPS_PORT_NEEDS_CERTIFICATE',
      'HTTPS_REDIRECT_DOMAIN_INVALID',
      'CLIENT_CA_INVALID',
      'CLIENT_CERTIFICATE_HTTP3',
      'UPDATED_AT_MISMATCH',
    ],
  }),
});
