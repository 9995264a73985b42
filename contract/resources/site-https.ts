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
    description:
      'optional: clients may send a certificate; required: clients without one receive 403. Not available ' +
      'together with HTTP/3.',
  }),
  caPem: Type.String({
    maxLength: MAX_CLIENT_CA_PEM,
    description: 'CA certificates that verify client certificates, 1 to 10 in PEM; may be empty while the mode is off.',
  }),
  depth: Type.Integer({
    minimum: 1,
    maximum: 5,
    description: 'Highest number of intermediate certificates between the client certificate and its CA.',
  }),
  forwardHeaders: Type.Boolean({ description: 'Whether origins receive the client certificate in headers.' }),
};

const https = {
  certificateId: { ...Nullable(Id), description: 'Certificate of the site; null: HTTP only.' },
  additionalCertificateIds: Type.Array(Id, {
    maxItems: MAX_ADDITIONAL_CERTIFICATES,
    uniqueItems: true,
    description:
      'Further certificates, for more domains or another key type. Clients receive the best one that they ' +
      'support for the name.',
  }),
  forceHttps: Type.Boolean({ description: 'Whether HTTP requests are redirected to HTTPS; needs a certificate.' }),
  redirectStatus: Type.Unsafe<Status>(Type.Union(HTTPS_REDIRECT_STATUSES.map((status) => Type.Literal(status)))),
  redirectPort: Type.Integer({
    minimum: 1,
    maximum: 65_535,
    description: 'Port of the redirect: 443 or an HTTPS port of the site.',
  }),
  redirectExcludedDomains: Type.Array(Type.String({ minLength: 1, maxLength: 1024 }), {
    maxItems: MAX_EXCLUDED_DOMAINS,
    description: 'Domains of the site that are not redirected.',
  }),
  hstsMaxAge: Type.Integer({
    minimum: 0,
    maximum: MAX_HSTS_AGE,
    description: 'HSTS max-age in seconds; 0: no HSTS header.',
  }),
  hstsIncludeSubdomains: Type.Boolean(),
  hstsPreload: Type.Boolean(),
  minimumVersion: OneOf(TLS_VERSIONS, { description: 'Minimum TLS version.' }),
  cipherProfile: OneOf(CIPHER_PROFILES, {
    description:
      'Cipher suites of TLS 1.2; those of TLS 1.3 are fixed. modern: ECDHE with AES128-GCM and CHACHA20; ' +
      'compatible: also AES256-GCM.',
  }),
  http2: Type.Boolean(),
  http3: Type.Boolean({ description: 'Whether HTTP/3 is advertised to clients.' }),
  ocspStapling: Type.Boolean({ description: 'Whether nodes staple OCSP responses.' }),
};

const coding = (name: string, minimum: number, maximum: number, note = '') => ({
  [name]: Type.Boolean({ description: `Whether responses are compressed with ${name}.` }),
  [`${name}Level`]: Type.Integer({ minimum, maximum, ...(note === '' ? {} : { description: note }) }),
  [`${name}MinLength`]: Type.Integer({
    minimum: 1,
    maximum: MAX_MIN_LENGTH,
    description: 'Minimum response size for compression, in bytes.',
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
  ...(coding('gzip', 0, 9, '0: chosen by the node.') as Coding<'gzip'>),
  ...(coding('brotli', 1, 11) as Coding<'brotli'>),
  ...(coding('zstd', 1, 19) as Coding<'zstd'>),
  compressMaxLength: Type.Integer({
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    description: 'Maximum response size for compression, in bytes; 0: no limit.',
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
  { additionalProperties: false, description: 'All settings; omitted fields return to their defaults.' },
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
      status: OneOf(CERTIFICATE_STATUSES, { description: 'State of the latest issue.' }),
      notAfter: Nullable(Timestamp),
    }),
    { description: 'Certificates of the settings, in their order.' },
  ),
  pendingDomains: Type.Array(Type.String(), {
    description:
      'Domains that no certificate covers yet. They are served over plain HTTP only until the certificate ' +
      'is reissued.',
  }),
  updatedAt: Timestamp,
};

export const SiteHttps = Type.Object(state);
export const SavedSiteHttps = Type.Object({
  ...state,
  revision: Nullable({ ...Decimal, description: 'Revision that publishes the change; null if nothing changed.' }),
});

export const siteHttps = resource('sites.https', {
  ...settings({
    path: '/sites/{id}/https',
    of: { id: Id },
    reads: 'Returns the HTTPS and compression settings of a site.',
    saves: 'Replaces all HTTPS and compression settings of a site; omitted fields return to their defaults.',
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
