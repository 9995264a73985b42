import Type from 'typebox';
import { resource } from '../procedure.ts';
import { Decimal, Id, Nullable } from '../scalars/common.ts';
import { settings } from '../settings.ts';
import { LackingNode } from './client-ip.ts';

const Action = Type.Union([Type.Literal('page'), Type.Literal('close'), Type.Literal('site')], {
  default: 'page',
  description: 'page: 404 page; close: the connection is closed without a response; site: the default site responds.',
});

const scan = {
  enabled: Type.Boolean({ default: false, description: 'Whether networks that request unknown hosts are banned.' }),
  threshold: Type.Integer({
    minimum: 10,
    maximum: 10_000,
    default: 100,
    description: 'Requests in 60 s from an IPv4 address or IPv6 /64. The next one bans it on all sites and nodes.',
  }),
  banSeconds: Type.Integer({
    minimum: 60,
    maximum: 86_400,
    default: 3600,
    description: 'Length of the ban in seconds.',
  }),
};

const fields = {
  unknownHost: Action,
  ipAccess: Action,
  defaultSiteId: { ...Nullable(Id), default: null, description: 'Enabled site of the cluster; required with `site`.' },
  defaultCertificate: Type.Boolean({
    default: false,
    description: 'Whether TLS connections without a server name receive the certificate of the default site.',
  }),
  scan: Type.Object(scan, { description: 'Scan protection.' }),
};
const state = {
  ...fields,
  unsupportedNodes: Type.Array(LackingNode, {
    description: 'Active nodes without the capability unknown-host-v1, at most 100.',
  }),
};

export const unknownHosts = resource(
  'clusters.unknownHosts',
  settings({
    path: '/clusters/{clusterId}/unknown-hosts',
    of: { clusterId: Id },
    reads: 'Returns the response to requests for unknown hosts.',
    saves: 'Sets the response to requests for unknown hosts and to requests by IP address.',
    change: {
      unknownHost: Type.Optional(fields.unknownHost),
      ipAccess: Type.Optional(fields.ipAccess),
      defaultSiteId: Type.Optional(fields.defaultSiteId),
      defaultCertificate: Type.Optional(fields.defaultCertificate),
      scan: Type.Optional(Type.Partial(Type.Object(scan), { additionalProperties: false })),
    },
    output: Type.Object(state),
    saved: Type.Object({ ...state, revision: Nullable(Decimal) }),
    audit: 'cluster.unknown_hosts_update',
    errors: ['CLUSTER_NOT_FOUND'],
    saveErrors: ['DEFAULT_SITE_INVALID', 'DEFAULT_SITE_CERTIFICATE_REQUIRED'],
  }),
);
