// How far a site has reached the nodes, and what is left to do before visitors reach it.
import Type from 'typebox';
import { Id, Nullable, Timestamp } from '../scalars/common.ts';

const Blocked = Type.Object({
  kind: Type.String({ description: 'Kind of the entry, for example `site` or `protection`.' }),
  reason: Type.Union([Type.Literal('failed'), Type.Literal('lacking')], {
    description: 'failed: the nodes could not apply the entry; lacking: the nodes lack a capability that it needs.',
  }),
  capabilities: Type.Array(Type.String(), { description: 'Capabilities that the nodes lack; empty with `failed`.' }),
  message: Type.String({ description: 'Error that the nodes reported; empty with `lacking`.' }),
  count: Type.Integer({ minimum: 1, description: 'Number of nodes concerned.' }),
  nodes: Type.Array(Type.Object({ id: Id, name: Type.String() }), { description: 'The first 5 of them, by name.' }),
});

export const Delivery = Type.Object({
  state: Type.Union([Type.Literal('pending'), Type.Literal('partial'), Type.Literal('live'), Type.Literal('disabled')]),
  totalNodes: Type.Integer({ minimum: 0, description: 'Number of online active nodes in the cluster.' }),
  servingNodes: Type.Integer({
    minimum: 0,
    description: 'Number of these that run the site in any version; for a disabled site, nodes that still run it.',
  }),
  currentNodes: Type.Integer({
    minimum: 0,
    description: 'Number of these that run the latest version of the site completely, with a healthy data plane.',
  }),
  blocked: Type.Array(Blocked, {
    description: 'Entries of the site that nodes have not applied, most nodes first, at most 20.',
  }),
  unserved: Type.Boolean({
    description:
      'Whether no node serves the enabled site. The cause is one of: the cluster never had a connected node, nodes ' +
      'have not applied the site, or it changed more than 10 seconds ago.',
  }),
  unknown: Type.Boolean({
    description:
      'Whether it is unknown if nodes serve the enabled site: nodes of its cluster were connected before, and none is now.',
  }),
  canary: Nullable(Type.Object({ endsAt: Nullable(Timestamp), autoPromote: Type.Boolean() })),
});

export const Launch = Type.Object({
  addresses: Type.Array(Type.String(), { description: 'Edge addresses for A and AAAA records, IPv4 first.' }),
  domains: Type.Array(
    Type.Object({
      name: Type.String(),
      probe: Nullable(Type.String({ description: 'Name that was resolved.' })),
      pointing: Type.Union(
        [
          Type.Literal('ok'),
          Type.Literal('elsewhere'),
          Type.Literal('unresolved'),
          Type.Literal('unchecked'),
          Type.Literal('unknown'),
        ],
        {
          description:
            'unresolved: the name has no address. unchecked: suffix and pattern domains cannot be resolved. ' +
            'unknown: DNS timed out, or there is no edge address to compare with.',
        },
      ),
    }),
  ),
  certificate: Type.Object({
    state: Type.Union([
      Type.Literal('none'),
      Type.Literal('covered'),
      Type.Literal('uncovered'),
      Type.Literal('issuing'),
      Type.Literal('failed'),
      Type.Literal('expired'),
    ]),
    id: Nullable(Id),
    name: Nullable(Type.String()),
    uncovered: Type.Array(Type.String()),
    partly: Type.Array(Type.String(), {
      description:
        'Suffix and pattern domains that certificates cover for some of their names only. The edge redirects no other ' +
        'of their names to HTTPS.',
    }),
    error: Nullable(Type.String()),
  }),
  leftOutOrigins: Type.Array(
    Type.Object({
      address: Type.String(),
      port: Type.Integer(),
      reason: Type.Union([Type.Literal('group'), Type.Literal('address')], {
        description:
          'group: no enabled rule chooses the group of the origin. address: its special-purpose address is no ' +
          'longer in the origin allow list.',
      }),
    }),
    { description: 'Origins that receive no requests, in the order of the site.' },
  ),
  delivery: Delivery,
});
