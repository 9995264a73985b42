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
    error: Type.String({ description: 'Code of what its last use failed with.' }),
  }),
  Type.Object({ code: Type.Literal('caa_forbidden'), name: Type.String() }),
  Type.Object({
    code: Type.Literal('directory_failed'),
    reason: OneOf([...DIRECTORY_FAULTS, 'missing'], { description: 'How far the own authority is reached.' }),
  }),
]);
export type HttpsBlocker = Static<typeof HttpsBlocker>;

const Check = Type.Object({
  request: Type.Object(
    {
      name: Type.String(),
      names: Names,
      email: Type.String({ description: 'Of the latest request; empty where there was none.' }),
      challenge: OneOf(['http01', 'dns01']),
      dnsCredentialId: Nullable(Id),
    },
    { description: 'What to ask the authority for.' },
  ),
  blockers: Type.Array(HttpsBlocker, { description: 'All that stands in its way.' }),
  certificates: Type.Array(Type.Object({ id: Id, name: Type.String() }), {
    description: 'Certificates that cover every domain already, those that last longest first; at most 20.',
  }),
});
export type HttpsCheck = Static<typeof Check>;

export const httpsCheck = resource('sites.https', {
  check: procedure({
    method: 'GET',
    path: '/sites/{id}/https/check',
    summary: 'Tells what one request for a certificate of the site asks for, and what stands in its way.',
    input: Input({
      id: Id,
      ca: Type.Optional(OneOf(CERTIFICATE_AUTHORITIES, { description: 'Default letsencrypt.' })),
    }),
    output: Check,
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: ['SITE_NOT_FOUND'],
  }),
});
