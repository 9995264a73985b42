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
export const TSIG_ALGORITHMS = ['hmac-sha256', 'hmac-sha512', 'hmac-sha384', 'hmac-sha224', 'hmac-sha1'] as const;
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
  description: 'Webhook only: URL that receives the changes; https, or http for an address of a private network.',
});
const UpdateServer = Type.String({
  ...Server,
  description: 'rfc2136 only: server that receives the updates, as host or host:port. Default port 53.',
});
const KeyName = Type.String({ minLength: 1, maxLength: 253, description: 'rfc2136 only: name of the TSIG key.' });
const Algorithm = OneOf(TSIG_ALGORITHMS, { description: 'rfc2136 only: TSIG algorithm. Default `hmac-sha256`.' });
const Nameservers = Type.Array(Type.String(Server), {
  maxItems: MAX_NAMESERVERS,
  description:
    'Servers that are queried for the records, as host or host:port; empty: the servers in the NS ' +
    'records of the zone.',
});
const Secret = Type.String({
  minLength: MIN_DNS_SECRET,
  maxLength: 1024,
  description: 'Webhook: key that signs the requests; rfc2136: TSIG key in base64. Never returned.',
});

export const DnsCredential = Type.Object({
  id: Id,
  name: Name,
  provider: Type.String({ description: 'Key of the provider in `GET /dns/catalog`.' }),
  zone: Type.String({ description: 'Zone in which records are written.' }),
  url: Nullable(Url),
  server: Nullable(UpdateServer),
  keyName: Nullable(KeyName),
  algorithm: Nullable(Algorithm),
  nameservers: Nameservers,
  certificateCount: Type.Integer({ minimum: 0, description: 'Number of certificates that use the credential.' }),
  lastError: Nullable(Type.String({ description: 'Error code of the latest use; null if it did not fail.' })),
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
      error: Nullable(Type.String({ description: 'Error code, as in `lastError` of certificates.' })),
    }),
    {
      description:
        'Steps of the trial: a test value is written, seen at each server of the zone within 8 s, and removed.',
    },
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
    summary: 'Lists DNS credentials by name, without their secrets.',
    input: Input({ ...SearchQuery('Part of the name or of the zone, case-insensitive.'), ...PageQuery(50) }),
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
    summary: 'Returns a DNS credential without its secret.',
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
    summary: 'Creates a DNS credential for DNS-01 validation.',
    input: Input({
      ...access,
      provider: OneOf(DNS_PROVIDERS),
      zone: Type.String({ minLength: 1, maxLength: 253, description: 'Zone in which records are written.' }),
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
    summary: 'Replaces the access settings of a DNS credential. Provider and zone stay; the secret stays if omitted.',
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
    summary: 'Tests a DNS credential: writes a test record, queries it and removes it.',
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
    summary: 'Deletes a DNS credential that no certificate uses.',
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
