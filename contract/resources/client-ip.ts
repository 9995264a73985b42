import Type from 'typebox';
import { resource } from '../procedure.ts';
import { Decimal, Id, Nullable, OneOf } from '../scalars/common.ts';
import { settings } from '../settings.ts';

export const MAX_TRUSTED_CIDRS = 64;

const Mode = Type.Union([Type.Literal('direct'), Type.Literal('proxy_protocol'), Type.Literal('header')], {
  description:
    'Source of the client address. direct: the TCP peer. proxy_protocol: the PROXY header, with which ' +
    'every connection must start. header: a request header, accepted only from trusted peers.',
});
const TrustedCidrs = Type.Array(Type.String({ maxLength: 64 }), {
  maxItems: MAX_TRUSTED_CIDRS,
  description: 'Mode `header` only, 1 to 64 CIDRs: peers whose header is trusted. They are never banned.',
});
const Header = Type.String({
  maxLength: 64,
  description:
    'Mode `header` only: lower-case name of [a-z0-9-], for example cf-connecting-ip. Not allowed: ' +
    'hop-by-hop headers, host, cookie, authorization, x-request-id, x-svc-*.',
});
const DropForwardedFor = Type.Boolean({
  description:
    'Mode `direct` only: whether origins receive only the peer in X-Forwarded-For, without the chain ' +
    'that the client sent.',
});

const TrustForwardedProto = Type.Boolean({
  description:
    'Mode `header` only: whether trusted peers say in X-Forwarded-Proto, or in `Forwarded` if that is the ' +
    'header, how the client came. Redirects to HTTPS, HSTS, cookies, rules and origins go by it. Absent: true.',
});

export const ClientIpSettings = Type.Object({
  mode: Mode,
  trustedCidrs: Type.Optional(TrustedCidrs),
  header: Type.Optional(Header),
  trustForwardedProto: Type.Optional(TrustForwardedProto),
  dropForwardedFor: Type.Optional(DropForwardedFor),
});

export const LackingNode = Type.Object({ id: Id, name: Type.String() });

const state = {
  settings: ClientIpSettings,
  unsupportedNodes: Type.Array(LackingNode, {
    description: 'Active nodes without the capability client-ip-v1, at most 100.',
  }),
  warnings: Type.Array(
    Type.Object({
      kind: OneOf(['proxy_peers_unset'], {
        description:
          'proxy_peers_unset: in mode `proxy_protocol` these nodes trust the PROXY header of every peer. No ' +
          'address in it is exempt from bans, limits and challenges. Start the nodes with --proxy-peers.',
      }),
      nodes: Type.Array(LackingNode, { description: 'Active nodes concerned, at most 100.' }),
    }),
  ),
};

export const clientIp = resource(
  'clusters.clientIp',
  settings({
    path: '/clusters/{clusterId}/client-ip',
    of: { clusterId: Id },
    reads: 'Returns how nodes find the client address of a request.',
    saves: 'Sets how nodes find the client address of a request, for bans, limits, rules and logs.',
    change: {
      settings: Type.Object(
        {
          mode: { ...Mode, default: 'direct' },
          trustedCidrs: Type.Optional(TrustedCidrs),
          header: Type.Optional(Header),
          trustForwardedProto: Type.Optional(TrustForwardedProto),
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
