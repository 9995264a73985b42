import Type from 'typebox';
import { resource } from '../procedure.ts';
import { Decimal, Id, Nullable, OneOf } from '../scalars/common.ts';
import { settings } from '../settings.ts';

export const MAX_TRUSTED_CIDRS = 64;

const Mode = Type.Union([Type.Literal('direct'), Type.Literal('proxy_protocol'), Type.Literal('header')], {
  description:
    'direct: the TCP peer; proxy_protocol: the address in the PROXY header, which every connection must start with; ' +
    'header: the address in a header, believed from trusted peers only.',
});
const TrustedCidrs = Type.Array(Type.String({ maxLength: 64 }), {
  maxItems: MAX_TRUSTED_CIDRS,
  description: 'Mode header only, 1 to 64: peers whose header is believed; never banned.',
});
const Header = Type.String({
  maxLength: 64,
  description:
    'Mode header only: lower-case name of [a-z0-9-]; no hop-by-hop header, host, cookie, authorization, ' +
    'x-request-id or x-svc-*.',
});
const DropForwardedFor = Type.Boolean({
  description: "Mode direct only: origins get the peer as X-Forwarded-For instead of the client's chain and the peer.",
});

export const ClientIpSettings = Type.Object({
  mode: Mode,
  trustedCidrs: Type.Optional(TrustedCidrs),
  header: Type.Optional(Header),
  dropForwardedFor: Type.Optional(DropForwardedFor),
});

export const LackingNode = Type.Object({ id: Id, name: Type.String() });

const state = {
  settings: ClientIpSettings,
  unsupportedNodes: Type.Array(LackingNode, { description: 'Active nodes without client-ip-v1; at most 100.' }),
  warnings: Type.Array(
    Type.Object({
      kind: OneOf(['proxy_peers_unset'], {
        description:
          'proxy_peers_unset: in mode proxy_protocol these nodes believe the PROXY header of every peer, so no address in ' +
          'it is exempt from bans, limits and challenges; start them with --proxy-peers.',
      }),
      nodes: Type.Array(LackingNode, { description: 'Active nodes; at most 100.' }),
    }),
  ),
};

export const clientIp = resource(
  'clusters.clientIp',
  settings({
    path: '/clusters/{clusterId}/client-ip',
    of: { clusterId: Id },
    reads: 'Answers how the client address of requests is found.',
    saves: 'Sets how the client address of requests is found, for bans, limits, rules and logs.',
    change: {
      settings: Type.Object(
        {
          mode: { ...Mode, default: 'direct' },
          trustedCidrs: Type.Optional(TrustedCidrs),
          header: Type.Optional(Header),
          dropForwardedFor: Type.Optional(DropForwardedFor),
        },
        { additionalProperties: false },
      ),
    },
    output: Type.Object(state),
    saved: Type.Object({ ...state, revision: Nullable(Decimal) }),
    audit: 'cluster.client_ip_update',
    errors: ['CLUSTER_NOT_FOUND'],
  }),
);
