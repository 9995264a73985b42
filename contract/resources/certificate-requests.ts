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
  description: 'Address that the authority knows the account by.',
});
export const EabKid = Type.String({
  maxLength: 256,
  pattern: '^[\\x21-\\x7e]*$',
  description: 'Id of an external account of the authority.',
});
export const EabHmacKey = Type.String({
  maxLength: 1024,
  pattern: '^[A-Za-z0-9_-]*$',
  description: 'Its key in base64url; never answered.',
});

/** Who can be asked for one that nobody keeps: another directory of Let's Encrypt, or the custom authority itself. */
export const REHEARSAL_AUTHORITIES = ['letsencrypt', 'custom'] as const;

/** What an authority is asked for, and how. */
const asked = {
  names: Type.Array(Type.String({ minLength: 1, maxLength: 255 }), {
    minItems: 1,
    maxItems: MAX_CERTIFICATE_NAMES,
    description: 'DNS names, each once; *.name for a wildcard, which needs dns01.',
  }),
  email: Email,
  keyType: Type.Optional(OneOf(ORDERED_KEY_TYPES, { description: 'Default ec256.' })),
  challenge: Type.Optional(
    OneOf(CHALLENGES, {
      description: 'What shows whose the names are: http01 (default) is answered by nodes, dns01 by records of DNS.',
    }),
  ),
  dnsCredentialId: Type.Optional(Nullable({ ...Id, description: 'Of dns01: what its records are written with.' })),
  eabKid: Type.Optional(EabKid),
  eabHmacKey: Type.Optional(EabHmacKey),
  skipDnsCheck: Type.Optional(
    Type.Boolean({ default: false, description: 'Whether the authority is asked wherever the names point.' }),
  ),
};

const request = {
  name: CertificateName,
  ...asked,
  ca: Type.Optional(OneOf(CERTIFICATE_AUTHORITIES, { description: 'Whom to ask. Default letsencrypt.' })),
  autoRenew: Type.Optional(Type.Boolean({ default: true })),
  bindSiteId: Type.Optional(
    Nullable({ ...Id, description: 'Site that gets the certificate; its names cover every domain of the site.' }),
  ),
};

const Progress = Type.Object({
  certificateId: Id,
  state: OneOf(['waiting', 'running', 'done', 'failed'], {
    description: 'Of the latest order; waiting: it has not begun.',
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
        description: 'asked: the authority looks whether the answer is there.',
      }),
      error: Nullable(Type.String({ description: 'Code, as of lastError.' })),
    }),
  ),
  error: Nullable(
    Type.Object(
      {
        code: Type.String(),
        params: Type.Object({
          names: Type.Array(Type.String(), { description: 'Names that it is about, the first 20.' }),
          nodes: Type.Array(Type.String(), { description: 'Nodes that it is about, the first 20.' }),
          until: Nullable({ ...Timestamp, description: 'The authority is not asked before then.' }),
        }),
      },
      { description: 'What the order failed with; of one that is running, what it met and tries again.' },
    ),
  ),
  startedAt: Nullable(Timestamp),
  finishedAt: Nullable(Timestamp),
  nextTryAt: Nullable({ ...Timestamp, description: 'When this step, or the next order, begins.' }),
});
export type CertificateProgress = Static<typeof Progress>;

export const certificateRequests = resource('certificates', {
  request: procedure({
    method: 'POST',
    path: '/certificates/request',
    summary: 'Asks an authority for a certificate; its progress tells how far it is.',
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
    summary:
      'Orders a certificate from a directory for trials and throws it away; progress of its id tells each step, for a day.',
    input: Input({
      ...asked,
      ca: Type.Optional(
        OneOf(REHEARSAL_AUTHORITIES, {
          description: 'letsencrypt (default): its staging directory; custom: the authority itself.',
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
    summary: 'Asks the authority for the next certificate now.',
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
    summary: 'Tells how far the latest order of a certificate, or a rehearsal, is, step by step and name by name.',
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
