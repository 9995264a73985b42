import Type from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Decimal, Id, Input, Nullable } from '../scalars/common.ts';
import { LackingNode } from './client-ip.ts';

const Action = Type.Union([Type.Literal('page'), Type.Literal('close'), Type.Literal('site')], {
  default: 'page',
  description: 'page: 404 page; close: the connection ends without an answer; site: the default site answers.',
});

const settings = {
  unknownHost: Action,
  ipAccess: Action,
  defaultSiteId: { ...Nullable(Id), default: null, description: 'Enabled site of the cluster, needed for site.' },
  defaultCertificate: Type.Boolean({
    default: false,
    description: 'Whether TLS without a server name shows the certificate of the default site.',
  }),
};
const state = {
  ...settings,
  unsupportedNodes: Type.Array(LackingNode, { description: 'Active nodes without unknown-host-v1; at most 100.' }),
};

export const UnknownHostSettings = Type.Object(settings);

export const unknownHosts = resource('clusters.unknownHosts', {
  get: procedure({
    method: 'GET',
    path: '/clusters/{clusterId}/unknown-hosts',
    summary: 'Answers what requests for hosts of no site get.',
    input: Input({ clusterId: Id }),
    output: Type.Object(state),
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: ['CLUSTER_NOT_FOUND'],
  }),
  set: procedure({
    method: 'PUT',
    path: '/clusters/{clusterId}/unknown-hosts',
    summary: 'Sets what requests for hosts of no site, and requests by IP address, get.',
    input: Input({
      clusterId: Id,
      unknownHost: Type.Optional(settings.unknownHost),
      ipAccess: Type.Optional(settings.ipAccess),
      defaultSiteId: Type.Optional(settings.defaultSiteId),
      defaultCertificate: Type.Optional(settings.defaultCertificate),
    }),
    output: Type.Object({ ...state, revision: Nullable(Decimal) }),
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: 'cluster.unknown_hosts_update',
    idempotency: 'accepted',
    errors: ['CLUSTER_NOT_FOUND', 'DEFAULT_SITE_INVALID', 'DEFAULT_SITE_CERTIFICATE_REQUIRED'],
  }),
});
