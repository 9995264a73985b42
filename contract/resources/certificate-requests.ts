import Type, { type Static } from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Id, Input, Nullable, OneOf, Timestamp } from '../scalars/common.ts';
import { CERTIFICATE_AUTHORITIES, Certificate, CertificateName, MAX_CERTIFICATE_NAMES } from './certificates.ts';

/** Keys that an authority is asked to vouch for. */
export const ORDERED_KEY_TYPES = ['ec256', 'rsa2048'] as const;
export const CHALLENGES = ['http01', 'dns01'] as const;
/** In their order. */
export const ORDER_STEPS = [
  'check',
  'account',
  'order',
  'challenges',
  'present',
  'propagate',
  'validate',
  'finalize',
  'download',
] as const;

export const Email = Type.String({
  minLength: 3,
  maxLength: 254,
  pattern: "^[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}@[A-Za-z0-9-]{1,63}(\\.[A-Za-z0-9-]{1,63})+$",
  description: 'Email address of the ACME account.',
});
export const EabKid = Type.String({
  maxLength: 256,
  pattern: '^[\\x21-\\x7e]*$',
  description: 'Key ID of the external account (EAB) at the CA.',
});
export const EabHmacKey = Type.String({
  maxLength: 1024,
  pattern: '^[A-Za-z0-9_-]*$',
  description: 'HMAC key of the external account in base64url; never returned.',
});

/** Who can be asked for one that nobody keeps: another directory of Let's Encrypt, or the custom authority itself. */
export const REHEARSAL_AUTHORITIES = ['letsencrypt', 'custom'] as const;

/** What an authority is asked for, and how. */
const asked = {
  names: Type.Array(Type.String({ minLength: 1, maxLength: 255 }), {
    minItems: 1,
    maxItems: MAX_CERTIFICATE_NAMES,
    description: 'DNS names, each once. A wildcard *.name needs `dns01`.',
  }),
  email: Email,
  keyType: Type.Optional(OneOf(ORDERED_KEY_TYPES, { description: 'Key type of the certificate. Default `ec256`.' })),
  challenge: Type.Optional(
    OneOf(CHALLENGES, {
      description: 'Validation method: http01 (default) through the nodes, dns01 through DNS records.',
    }),
  ),
  dnsCredentialId: Type.Optional(
    Nullable({ ...Id, description: 'DNS credential that writes the records; only with `dns01`.' }),
  ),
  eabKid: Type.Optional(EabKid),
  eabHmacKey: Type.Optional(EabHmacKey),
  skipDnsCheck: Type.Optional(
    Type.Boolean({ default: false, description: 'Whether to skip the check that the names point to the cluster.' }),
  ),
};

const request = {
  name: CertificateName,
  ...asked,
  ca: Type.Optional(OneOf(CERTIFICATE_AUTHORITIES, { description: 'Certificate authority. Default `letsencrypt`.' })),
  autoRenew: Type.Optional(Type.Boolean({ default: true })),
  bindSiteId: Type.Optional(
    Nullable({
      ...Id,
      description: 'Site that receives the certificate. The names must cover every domain of the site.',
    }),
  ),
};

const Progress = Type.Object({
  certificateId: Id,
  state: OneOf(['waiting', 'running', 'done', 'failed'], {
    description: 'State of the latest order; waiting: not started.',
  }),
  steps: Type.Array(
    Type.Object({
      step: OneOf(ORDER_STEPS),
      state: OneOf(['waiting', 'running', 'done', 'failed']),
    }),
  ),
  names: Type.Array(
    Type.Object({
      name: Type.String(),
      state: OneOf(['waiting', 'asked', 'valid', 'invalid'], {
        description: 'asked: the CA is validating the name.',
      }),
      error: Nullable(Type.String({ description: 'Error code, as in `lastError`.' })),
    }),
  ),
  error: Nullable(
    Type.Object(
      {
        code: Type.String(),
        params: Type.Object({
          names: Type.Array(Type.String(), { description: 'Affected names, the first 20.' }),
          nodes: Type.Array(Type.String(), { description: 'Affected nodes, the first 20.' }),
          until: Nullable({ ...Timestamp, description: 'The console does not contact the CA before this time.' }),
        }),
      },
      { description: 'Why the order failed; while it is running, the problem it retries.' },
    ),
  ),
  startedAt: Nullable(Timestamp),
  finishedAt: Nullable(Timestamp),
  nextTryAt: Nullable({ ...Timestamp, description: 'Start of the retry or of the next order.' }),
});
export type CertificateProgress = Static<typeof Progress>;

export const certificateRequests = resource('certificates', {
  request: procedure({
    method: 'POST',
    path: '/certificates/request',
    summary: 'Orders a certificate from a CA; its progress shows each step.',
    input: Input(request),
    output: Certificate,
    status: 201,
    access: 'operator',
    readOnly: false,
    audit: 'certificate.request',
    idempotency: 'accepted',
    errors: [
      'SITE_NOT_FOUND',
      'CERTIFICATE_DOMAIN_MISMATCH',
      'CERTIFICATE_BUSY',
      'ACME_DIRECTORY_NOT_CONFIGURED',
      'DNS_CREDENTIAL_NOT_FOUND',
    ],
  }),
  rehearse: procedure({
    method: 'POST',
    path: '/certificates/rehearse',
    summary: 'Orders a test certificate and discards it. Its progress is kept for 1 day.',
    input: Input({
      ...asked,
      ca: Type.Optional(
        OneOf(REHEARSAL_AUTHORITIES, {
          description: 'letsencrypt (default): its staging directory; custom: the custom CA itself.',
        }),
      ),
    }),
    output: Progress,
    status: 201,
    access: 'operator',
    readOnly: false,
    audit: 'certificate.rehearse',
    idempotency: 'accepted',
    errors: ['ACME_DIRECTORY_NOT_CONFIGURED', 'DNS_CREDENTIAL_NOT_FOUND'],
  }),
  renew: procedure({
    method: 'POST',
    path: '/certificates/{id}/renew',
    summary: 'Orders the next issue of a certificate from its CA now.',
    input: Input({ id: Id }),
    output: Certificate,
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: 'certificate.renew',
    idempotency: 'accepted',
    errors: ['CERTIFICATE_NOT_FOUND', 'CERTIFICATE_NOT_ORDERED', 'CERTIFICATE_BUSY'],
  }),
  progress: procedure({
    method: 'GET',
    path: '/certificates/{id}/progress',
    summary: 'Returns the progress of the latest order or rehearsal, by step and by name.',
    input: Input({ id: Id }),
    output: Progress,
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: ['CERTIFICATE_NOT_FOUND', 'CERTIFICATE_NOT_ORDERED'],
  }),
});
