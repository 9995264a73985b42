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
  description: 'The certificate and those that lead to its authority, in this order, 1 to 10 in PEM.',
});
const PrivateKeyPem = Type.String({
  minLength: MIN_PEM,
  maxLength: MAX_KEY_PEM,
  description: 'Its key in PEM, not encrypted: RSA of at least 2048 bits, or ECDSA P-256, P-384 or P-521.',
});

const certificate = {
  id: Id,
  name: Type.String(),
  names: Type.Array(Type.String(), {
    description: 'DNS names that it covers, in lower case; of one that was not issued yet, those asked for.',
  }),
  pendingNames: Type.Array(Type.String(), {
    description: 'Names that its next issue covers and the present one does not; empty for uploads.',
  }),
  source: OneOf(CERTIFICATE_SOURCES),
  status: OneOf(CERTIFICATE_STATUSES, {
    description: 'Of its last issue: a renewal that failed leaves what is there valid, and says so here.',
  }),
  fingerprint: Nullable(
    Type.String({ description: 'SHA-256 of the certificate in hexadecimal; another one with each renewal.' }),
  ),
  issuer: Nullable(Type.String({ description: 'Who issued it.' })),
  keyType: Nullable(OneOf(KEY_TYPES)),
  notBefore: Nullable(Timestamp),
  notAfter: Nullable(Timestamp),
  autoRenew: Type.Boolean(),
  renewAt: Nullable(Timestamp),
  lastError: Nullable(Type.String({ description: 'Code of what made the last issue fail.' })),
  bindSiteId: Nullable({ ...Id, description: 'Site that gets it once it is issued.' }),
  siteCount: Type.Integer({ minimum: 0, description: 'Sites that use it.' }),
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
  serial: Type.String({ description: 'Hexadecimal.' }),
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
      'serving: it has this certificate; pending: a configuration with it is on its way; former: it serves one of before; ' +
      'failed: it cannot use it, see message; unsupported: it lacks what HTTPS of a site needs; unknown: more fails there ' +
      'than it tells of; offline: not connected.',
  }),
  message: Type.String({
    description:
      'What the node said: of failed, why; of pending, what fails beside it. Empty otherwise. In English, as ' +
      'certificate "name": what is wrong.',
  }),
});

export const Certificate = Type.Object({
  ...certificate,
  chain: Type.Array(ChainCertificate, {
    maxItems: MAX_CHAIN,
    description: 'As clients get it, its own certificate first; empty until it is issued.',
  }),
  sites: Type.Array(Type.Object({ id: Id, name: Type.String() }), {
    maxItems: SHOWN_USERS,
    description: `Sites that use it by name, the first ${SHOWN_USERS}.`,
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
      ...SearchQuery('Part of the name or of a DNS name, in any case.'),
      source: Type.Optional(OneOf(CERTIFICATE_SOURCES)),
      status: Type.Optional(OneOf(CERTIFICATE_STATUSES)),
      condition: Type.Optional(
        OneOf(CERTIFICATE_CONDITIONS, {
          description: `ending: it ends within ${CERTIFICATE_ENDING_DAYS} days, or has ended; failed: its last issue failed.`,
        }),
      ),
      bindSiteId: Type.Optional({ ...Id, description: 'Site that gets it once it is issued.' }),
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
    summary: 'Answers one certificate with its chain; its key is never answered.',
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
    summary: 'Lists the active nodes of the clusters that use a certificate, with whether they serve it.',
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
    summary: 'Takes a certificate with its key.',
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
    summary: 'Deletes a certificate that no site uses, and its key.',
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
    summary: 'Answers whom certificates can be asked of.',
    input: Empty,
    output: Type.Object({
      acmeDirectory: Nullable(Type.String({ description: 'Directory of the custom authority; null without one.' })),
      acmeDirectoryEab: Type.Boolean({ description: 'Whether requests to it carry its external account.' }),
      defaultCa: OneOf(CERTIFICATE_AUTHORITIES, { description: 'Whom a request asks that names nobody.' }),
    }),
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: [],
  }),
});
