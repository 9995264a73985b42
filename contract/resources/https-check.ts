import Type, { type Static } from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Id, Input, Nullable, OneOf } from '../scalars/common.ts';
import { DIRECTORY_FAULTS } from './acme-directory.ts';
import { CERTIFICATE_AUTHORITIES } from './certificates.ts';

const Names = Type.Array(Type.String());

/** What keeps an authority from vouching for a site. */
export const HttpsBlocker = Type.Union([
  Type.Object({ code: Type.Literal('no_certificate_names') }),
  Type.Object({ code: Type.Literal('nodes_offline'), cluster: Type.String({ description: 'Name of the cluster.' }) }),
  Type.Object({ code: Type.Literal('nodes_lack_http01'), nodes: Names }),
  Type.Object({
    code: Type.Literal('dns_not_pointing'),
    name: Type.String(),
    pointing: OneOf(['unresolved', 'elsewhere']),
  }),
  Type.Object({ code: Type.Literal('dns_credential_missing'), names: Names }),
  Type.Object({
    code: Type.Literal('dns_credential_failed'),
    credential: Type.String({ description: 'Name of the DNS credential.' }),
    error: Type.String({ description: 'Error code of the latest use of the DNS credential.' }),
  }),
  Type.Object({ code: Type.Literal('caa_forbidden'), name: Type.String() }),
  Type.Object({
    code: Type.Literal('directory_failed'),
    reason: OneOf([...DIRECTORY_FAULTS, 'missing'], { description: 'Why the custom CA cannot be reached.' }),
  }),
]);
export type HttpsBlocker = Static<typeof HttpsBlocker>;

const Check = Type.Object({
  request: Type.Object(
    {
      name: Type.String(),
      names: Names,
      email: Type.String({ description: 'Email address of the latest request; empty without one.' }),
      challenge: OneOf(['http01', 'dns01']),
      dnsCredentialId: Nullable(Id),
    },
    { description: 'Suggested certificate request.' },
  ),
  blockers: Type.Array(HttpsBlocker, { description: 'Problems that would make the request fail.' }),
  unchecked: Type.Array(Type.String(), {
    description:
      'Names whose DNS records or whose CA did not answer within 6 seconds; `blockers` may lack theirs. Ask again.',
  }),
  certificates: Type.Array(Type.Object({ id: Id, name: Type.String() }), {
    description: 'Existing certificates that cover every domain, latest expiry first; at most 20.',
  }),
});
export type HttpsCheck = Static<typeof Check>;

export const httpsCheck = resource('sites.https', {
  check: procedure({
    method: 'GET',
    path: '/sites/{id}/https/check',
    summary: 'Returns the certificate request that suits a site, and the problems that would make it fail.',
    input: Input({
      id: Id,
      ca: Type.Optional(
        OneOf(CERTIFICATE_AUTHORITIES, { description: 'Certificate authority. Default `letsencrypt`.' }),
      ),
    }),
    output: Check,
    slow: true,
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: ['SITE_NOT_FOUND'],
  }),
});
