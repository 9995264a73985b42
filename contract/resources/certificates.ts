import Type, { type Static } from 'typebox';
import { procedure, resource } from '../procedure.ts';
import {
  Empty,
  ExpectedUpdatedAt,
  Id,
  Input,
  Nullable,
  ONE_LINE,
  OneOf,
  Page,
  PageQuery,
  SearchQuery,
  SortQuery,
  Timestamp,
} from '../scalars/common.ts';

export const MAX_CERTIFICATE_NAME = 100;
/** Certificates of a chain. */
export const MAX_CHAIN = 10;
/** DNS names of a certificate. */
export const MAX_CERTIFICATE_NAMES = 100;
const MAX_CHAIN_PEM = 131_072;
const MAX_KEY_PEM = 32_768;
const MIN_PEM = 32;

export const CERTIFICATE_STATUSES = ['pending', 'issuing', 'ready', 'error'] as const;
export type CertificateStatus = (typeof CERTIFICATE_STATUSES)[number];
export const CERTIFICATE_SOURCES = ['upload', 'acme'] as const;
export type CertificateSource = (typeof CERTIFICATE_SOURCES)[number];
export const KEY_TYPES = ['rsa', 'p256', 'p384', 'p521'] as const;
export type KeyType = (typeof KEY_TYPES)[number];
/** Who can be asked for certificates. */
export const CERTIFICATE_AUTHORITIES = ['letsencrypt', 'zerossl', 'custom'] as const;
/** Why a chain cannot be used, as data.reason of CERTIFICATE_INVALID has it. */
export const CERTIFICATE_FAULTS = ['too_long', 'authority', 'not_authority', 'too_many_names'] as const;
/** Why authorities in PEM cannot be used, as data.reason of CLIENT_CA_INVALID and ACME_DIRECTORY_CA_INVALID has it. */
export const AUTHORITY_FAULTS = [
  'none',
  'too_many',
  'foreign_block',
  'unreadable',
  'not_authority',
  'explicit_curve',
] as const;
/** A certificate that ends within so many days ends soon. */
export const CERTIFICATE_ENDING_DAYS = 14;
/** What of a certificate wants somebody. */
export const CERTIFICATE_CONDITIONS = ['ending', 'failed'] as const;
export type CertificateCondition = (typeof CERTIFICATE_CONDITIONS)[number];
export const CERTIFICATE_SORT = ['name', 'notAfter', 'createdAt'] as const;

export const CertificateName = Type.String({
  minLength: 1,
  maxLength: MAX_CERTIFICATE_NAME,
  pattern: ONE_LINE,
  description: 'Name shown in lists.',
});
const ChainPem = Type.String({
  minLength: MIN_PEM,
  maxLength: MAX_CHAIN_PEM,
  description: 'The certificate and its intermediates up to the CA, in this order, 1 to 10 in PEM.',
});
const PrivateKeyPem = Type.String({
  minLength: MIN_PEM,
  maxLength: MAX_KEY_PEM,
  description: 'Private key in PEM, not encrypted: RSA of at least 2048 bits, or ECDSA P-256, P-384 or P-521.',
});

const certificate = {
  id: Id,
  name: Type.String(),
  names: Type.Array(Type.String(), {
    description: 'DNS names that the certificate covers, in lower case; before the first issue, the ordered names.',
  }),
  pendingNames: Type.Array(Type.String(), {
    description: 'Names that the next issue will cover and the present one does not; empty for uploads.',
  }),
  source: OneOf(CERTIFICATE_SOURCES),
  status: OneOf(CERTIFICATE_STATUSES, {
    description: 'State of the latest issue. After a failed renewal (error), the previous certificate stays in use.',
  }),
  fingerprint: Nullable(
    Type.String({ description: 'SHA-256 of the certificate in hexadecimal; changes with each renewal.' }),
  ),
  issuer: Nullable(Type.String({ description: 'Issuer name.' })),
  keyType: Nullable(OneOf(KEY_TYPES)),
  notBefore: Nullable(Timestamp),
  notAfter: Nullable(Timestamp),
  autoRenew: Type.Boolean(),
  renewAt: Nullable(Timestamp),
  lastError: Nullable(Type.String({ description: 'Error code of the latest issue; null if it did not fail.' })),
  bindSiteId: Nullable({ ...Id, description: 'Site that receives the certificate when it is issued.' }),
  siteCount: Type.Integer({ minimum: 0, description: 'Number of sites that use the certificate.' }),
  createdAt: Timestamp,
  updatedAt: Timestamp,
};

export const CertificateSummary = Type.Object(certificate);
export type CertificateSummary = Static<typeof CertificateSummary>;

const ChainCertificate = Type.Object({
  subject: Type.String(),
  issuer: Type.String(),
  notBefore: Timestamp,
  notAfter: Timestamp,
  serial: Type.String({ description: 'Serial number in hexadecimal.' }),
  fingerprint: Type.String({ description: 'SHA-256 in hexadecimal.' }),
});

/** What a node makes of a certificate. */
export const CERTIFICATE_NODE_STATES = [
  'serving',
  'pending',
  'former',
  'failed',
  'unsupported',
  'unknown',
  'offline',
] as const;

/** Sites named in a certificate. */
export const SHOWN_USERS = 50;

export const NodeOfCertificate = Type.Object({
  id: Id,
  name: Type.String(),
  clusterId: Id,
  state: OneOf(CERTIFICATE_NODE_STATES, {
    description:
      'serving: the node has this certificate. pending: a configuration with it is on its way. former: the ' +
      'node serves an earlier one. failed: the node cannot use it, see `message`. unsupported: the node ' +
      'lacks a capability for HTTPS. unknown: the node reports more failures than it lists. offline: the ' +
      'node is not connected.',
  }),
  message: Type.String({
    description:
      'Report of the node, in English, as certificate "name": reason. For failed, the cause; for pending, ' +
      'another failure on the node; else empty.',
  }),
});

/** What can be wrong with a certificate that is served, in English; a word in braces is a parameter. */
export const CERTIFICATE_WARNINGS = {
  chain_incomplete:
    'The chain ends before a CA that clients know: the certificate of {issuer} is missing, and clients without it ' +
    'reject the certificate. Replace the certificate with its intermediates.',
} as const;
export type CertificateWarningCode = keyof typeof CERTIFICATE_WARNINGS;

export const CertificateWarning = Type.Object({
  code: OneOf(Object.keys(CERTIFICATE_WARNINGS) as CertificateWarningCode[], { description: 'Stable warning code.' }),
  params: Type.Record(Type.String(), Type.String(), { description: 'Values inserted into the message, by name.' }),
  message: Type.String({ description: 'Warning in English.' }),
});

export const Certificate = Type.Object({
  ...certificate,
  warnings: Type.Array(CertificateWarning, {
    description: 'Possible mistakes. An upload without intermediates is completed from the CA where possible.',
  }),
  chain: Type.Array(ChainCertificate, {
    maxItems: MAX_CHAIN,
    description: 'Chain as sent to clients, leaf certificate first; empty until issued.',
  }),
  sites: Type.Array(Type.Object({ id: Id, name: Type.String() }), {
    maxItems: SHOWN_USERS,
    description: `Sites that use the certificate, by name, the first ${SHOWN_USERS}.`,
  }),
});
export type Certificate = Static<typeof Certificate>;

/** Requests and renewals are declared beside (certificate-requests.ts). */
export const certificates = resource('certificates', {
  list: procedure({
    method: 'GET',
    path: '/certificates',
    summary: 'Lists certificates, newest first unless sorted otherwise.',
    input: Input({
      ...SearchQuery('Part of the name or of a DNS name, case-insensitive.'),
      source: Type.Optional(OneOf(CERTIFICATE_SOURCES)),
      status: Type.Optional(OneOf(CERTIFICATE_STATUSES)),
      condition: Type.Optional(
        OneOf(CERTIFICATE_CONDITIONS, {
          description:
            `ending: expires within ${CERTIFICATE_ENDING_DAYS} days or has expired; failed: the latest issue ` +
            'failed.',
        }),
      ),
      bindSiteId: Type.Optional({ ...Id, description: 'Site that receives the certificate when it is issued.' }),
      ...SortQuery(CERTIFICATE_SORT),
      ...PageQuery(50),
    }),
    output: Page(CertificateSummary),
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: [],
  }),
  get: procedure({
    method: 'GET',
    path: '/certificates/{id}',
    summary: 'Returns a certificate with its chain, never its key.',
    input: Input({ id: Id }),
    output: Certificate,
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: ['CERTIFICATE_NOT_FOUND'],
  }),
  nodes: procedure({
    method: 'GET',
    path: '/certificates/{id}/nodes',
    summary: 'Lists the active nodes of clusters that use a certificate, with the state of the certificate on each.',
    input: Input({ id: Id, ...PageQuery(50) }),
    output: Page(NodeOfCertificate),
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: ['CERTIFICATE_NOT_FOUND'],
  }),
  upload: procedure({
    method: 'POST',
    path: '/certificates/upload',
    summary: 'Uploads a certificate with its key.',
    input: Input({ name: CertificateName, chainPem: ChainPem, privateKeyPem: PrivateKeyPem }),
    output: Certificate,
    status: 201,
    access: 'operator',
    readOnly: false,
    audit: 'certificate.upload',
    idempotency: 'accepted',
    errors: [
      'CERTIFICATE_INVALID',
      'CERTIFICATE_CHAIN_FOREIGN_BLOCK',
      'CERTIFICATE_CHAIN_UNREADABLE',
      'CERTIFICATE_CHAIN_ORDER',
      'CERTIFICATE_CHAIN_EXPLICIT_CURVE',
      'CERTIFICATE_KEY_UNREADABLE',
      'CERTIFICATE_KEY_MISMATCH',
      'CERTIFICATE_KEY_EXPLICIT_CURVE',
      'CERTIFICATE_KEY_TYPE_UNSUPPORTED',
      'CERTIFICATE_NOT_CURRENTLY_VALID',
      'CERTIFICATE_NO_DNS_NAMES',
    ],
  }),
  replace: procedure({
    method: 'PUT',
    path: '/certificates/{id}',
    summary: 'Replaces an uploaded certificate and its key; sites that use it serve the new one at once.',
    input: Input({ id: Id, chainPem: ChainPem, privateKeyPem: PrivateKeyPem, expectedUpdatedAt: ExpectedUpdatedAt }),
    output: Certificate,
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: 'certificate.replace',
    idempotency: 'accepted',
    errors: [
      'CERTIFICATE_NOT_FOUND',
      'CERTIFICATE_NOT_UPLOADED',
      'CERTIFICATE_DOMAIN_MISMATCH',
      'CERTIFICATE_INVALID',
      'CERTIFICATE_CHAIN_FOREIGN_BLOCK',
      'CERTIFICATE_CHAIN_UNREADABLE',
      'CERTIFICATE_CHAIN_ORDER',
      'CERTIFICATE_CHAIN_EXPLICIT_CURVE',
      'CERTIFICATE_KEY_UNREADABLE',
      'CERTIFICATE_KEY_MISMATCH',
      'CERTIFICATE_KEY_EXPLICIT_CURVE',
      'CERTIFICATE_KEY_TYPE_UNSUPPORTED',
      'CERTIFICATE_NOT_CURRENTLY_VALID',
      'CERTIFICATE_NO_DNS_NAMES',
      'UPDATED_AT_MISMATCH',
    ],
  }),
  delete: procedure({
    method: 'DELETE',
    path: '/certificates/{id}',
    summary: 'Deletes an unused certificate and its key.',
    input: Input({ id: Id }),
    output: Empty,
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: 'certificate.delete',
    idempotency: 'accepted',
    errors: ['CERTIFICATE_NOT_FOUND', 'CERTIFICATE_IN_USE', 'CERTIFICATE_BUSY'],
  }),
  settings: procedure({
    method: 'GET',
    path: '/certificates/settings',
    summary: 'Returns the certificate authorities that can issue certificates.',
    input: Empty,
    output: Type.Object({
      acmeDirectory: Nullable(
        Type.String({ description: 'ACME directory URL of the custom CA; null: none configured.' }),
      ),
      acmeDirectoryEab: Type.Boolean({ description: 'Whether requests to the custom CA use its external account.' }),
      defaultCa: OneOf(CERTIFICATE_AUTHORITIES, { description: 'CA of requests that name none.' }),
    }),
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: [],
  }),
});
