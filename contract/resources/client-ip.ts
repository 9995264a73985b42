import Type from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Decimal, Id, Input, Nullable } from '../scalars/common.ts';

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
};

export const clientIp = resource('clusters.clientIp', {
  get: procedure({
    method: 'GET',
    path: '/clusters/{clusterId}/client-ip',
    summary: 'Answers how the client address of requests is found.',
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
    path: '/clusters/{clusterId}/client-ip',
    summary: 'Sets how the client address of requests is found, for bans, limits, rules and logs.',
    input: Input({
      clusterId: Id,
      settings: Type.Object(
        {
          mode: { ...Mode, default: 'direct' },
          trustedCidrs: Type.Optional(TrustedCidrs),
          header: Type.Optional(Header),
          dropForwardedFor: Type.Optional(DropForwardedFor),
        },
        { additionalProperties: false },
      ),
    }),
    output: Type.Object({ ...state, revision: Nullable(Decimal) }),
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: 'cluster.client_ip_update',
    idempotency: 'accepted',
    errors: ['CLUSTER_NOT_FOUND'],
  }),
});
