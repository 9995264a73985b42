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
  Timestamp,
} from '../scalars/common.ts';

export const DNS_PROVIDERS = ['webhook', 'rfc2136'] as const;
export type DnsProviderKind = (typeof DNS_PROVIDERS)[number];
export const TSIG_ALGORITHMS = ['hmac-sha256', 'hmac-sha512'] as const;
export const MAX_NAMESERVERS = 8;
export const MIN_DNS_SECRET = 16;

const Name = Type.String({
  minLength: 1,
  maxLength: 100,
  pattern: ONE_LINE,
  description: 'Name shown in lists.',
});
const Server = { minLength: 1, maxLength: 261 };
const Url = Type.String({
  minLength: 1,
  maxLength: 2048,
  description: 'Of a webhook: where changes are sent; https, or http at an address of a private network.',
});
const UpdateServer = Type.String({
  ...Server,
  description: 'Of rfc2136: the server that takes changes, host or host:port; port 53 unless given.',
});
const KeyName = Type.String({ minLength: 1, maxLength: 253, description: 'Of rfc2136: name of its TSIG key.' });
const Algorithm = OneOf(TSIG_ALGORITHMS, { description: 'Of rfc2136: default hmac-sha256.' });
const Nameservers = Type.Array(Type.String(Server), {
  maxItems: MAX_NAMESERVERS,
  description:
    'Servers that are asked whether records are there, host or host:port; empty: those that NS records of the zone name.',
});
const Secret = Type.String({
  minLength: MIN_DNS_SECRET,
  maxLength: 1024,
  description: 'Of a webhook: what its requests are signed with; of rfc2136: the TSIG key in base64. Never answered.',
});

export const DnsCredential = Type.Object({
  id: Id,
  name: Name,
  provider: OneOf(DNS_PROVIDERS),
  zone: Type.String({ description: 'Zone that records are written to.' }),
  url: Nullable(Url),
  server: Nullable(UpdateServer),
  keyName: Nullable(KeyName),
  algorithm: Nullable(Algorithm),
  nameservers: Nameservers,
  certificateCount: Type.Integer({ minimum: 0, description: 'Certificates that are asked for with it.' }),
  lastError: Nullable(Type.String({ description: 'Code of what its last use failed with.' })),
  createdAt: Timestamp,
  updatedAt: Timestamp,
});
export type DnsCredential = Static<typeof DnsCredential>;

/** In their order. */
export const DNS_TRIAL_STEPS = ['write', 'look', 'remove'] as const;

const DnsTrial = Type.Object({
  steps: Type.Array(
    Type.Object({
      step: OneOf(DNS_TRIAL_STEPS),
      state: OneOf(['done', 'failed', 'skipped']),
      error: Nullable(Type.String({ description: 'Code, as of lastError of certificates.' })),
    }),
    { description: 'A value was written, seen at each server of the zone within 8 s, removed.' },
  ),
});
export type DnsTrial = Static<typeof DnsTrial>;

const access = {
  name: Name,
  url: Type.Optional(Url),
  server: Type.Optional(UpdateServer),
  keyName: Type.Optional(KeyName),
  algorithm: Type.Optional(Algorithm),
  nameservers: Type.Optional(Nameservers),
};

export const dnsCredentials = resource('dnsCredentials', {
  list: procedure({
    method: 'GET',
    path: '/dns-credentials',
    summary: 'Lists credentials for DNS by name, without their secrets.',
    input: Input({ ...SearchQuery('Part of the name or of the zone, in any case.'), ...PageQuery(50) }),
    output: Page(DnsCredential),
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: [],
  }),
  get: procedure({
    method: 'GET',
    path: '/dns-credentials/{id}',
    summary: 'Answers one credential for DNS without its secret.',
    input: Input({ id: Id }),
    output: DnsCredential,
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: ['DNS_CREDENTIAL_NOT_FOUND'],
  }),
  create: procedure({
    method: 'POST',
    path: '/dns-credentials',
    summary: 'Adds a credential with which the console shows authorities names by DNS.',
    input: Input({
      ...access,
      provider: OneOf(DNS_PROVIDERS),
      zone: Type.String({ minLength: 1, maxLength: 253, description: 'Zone that records are written to.' }),
      secret: Secret,
    }),
    output: DnsCredential,
    status: 201,
    access: 'operator',
    readOnly: false,
    audit: 'dns_credential.create',
    idempotency: 'accepted',
    errors: [],
  }),
  update: procedure({
    method: 'PUT',
    path: '/dns-credentials/{id}',
    summary: 'Replaces how a zone is reached; provider and zone stay, the secret does unless one is given.',
    input: Input({
      id: Id,
      ...access,
      secret: Type.Optional(Secret),
      expectedUpdatedAt: ExpectedUpdatedAt,
    }),
    output: DnsCredential,
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: 'dns_credential.update',
    idempotency: 'accepted',
    errors: ['DNS_CREDENTIAL_NOT_FOUND', 'UPDATED_AT_MISMATCH'],
  }),
  try: procedure({
    method: 'POST',
    path: '/dns-credentials/{id}/try',
    summary: 'Writes a record of no meaning with a credential for DNS, looks whether it is answered, and removes it.',
    input: Input({ id: Id }),
    output: DnsTrial,
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: 'dns_credential.try',
    idempotency: 'accepted',
    errors: ['DNS_CREDENTIAL_NOT_FOUND'],
  }),
  delete: procedure({
    method: 'DELETE',
    path: '/dns-credentials/{id}',
    summary: 'Deletes a credential that no certificate is asked for with.',
    input: Input({ id: Id }),
    output: Empty,
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: 'dns_credential.delete',
    idempotency: 'accepted',
    errors: ['DNS_CREDENTIAL_NOT_FOUND', 'DNS_CREDENTIAL_IN_USE'],
  }),
});
