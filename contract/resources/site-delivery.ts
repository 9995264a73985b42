// How far a site has reached the nodes, and what is left to do before visitors reach it.
import Type from 'typebox';
import { Id, Nullable, Timestamp } from '../scalars/common.ts';

const Blocked = Type.Object({
  kind: Type.String({ description: 'Kind of the entry, for example site or protection.' }),
  reason: Type.Union([Type.Literal('failed'), Type.Literal('held')], {
    description: 'failed: the nodes could not apply it; held: it needs capabilities that they do not report.',
  }),
  capabilities: Type.Array(Type.String(), { description: 'Those the nodes lack; empty for a failed entry.' }),
  message: Type.String({ description: 'What the nodes said; empty for a held entry.' }),
  count: Type.Integer({ minimum: 1, description: 'How many nodes.' }),
  nodes: Type.Array(Type.Object({ id: Id, name: Type.String() }), { description: 'The first 5 of them by name.' }),
});

export const Delivery = Type.Object({
  state: Type.Union([Type.Literal('pending'), Type.Literal('partial'), Type.Literal('live'), Type.Literal('disabled')]),
  totalNodes: Type.Integer({ minimum: 0, description: 'Online active nodes of the cluster.' }),
  servingNodes: Type.Integer({
    minimum: 0,
    description: 'Of those, nodes that run the site in any version; for a disabled site, nodes still running it.',
  }),
  currentNodes: Type.Integer({
    minimum: 0,
    description:
      'Nodes that run the latest version of everything published of the site with a healthy data plane, nothing of it ' +
      'failed or held.',
  }),
  blocked: Type.Array(Blocked, {
    description: 'Entries of the site that nodes could not apply or hold back, those of most nodes first, at most 20.',
  }),
  unserved: Type.Boolean({
    description:
      'Whether no connected node serves the enabled site, and it is not just on its way: no node is connected, nodes ' +
      'could not apply it or hold it back, or it was changed more than 10 seconds ago.',
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
            'unresolved: the name has no address; unchecked: suffix and pattern domains cannot be resolved; ' +
            'unknown: no answer in time, or no edge address to compare with.',
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
    error: Nullable(Type.String()),
  }),
  leftOutOrigins: Type.Array(
    Type.Object({
      address: Type.String(),
      port: Type.Integer(),
      reason: Type.Union([Type.Literal('group'), Type.Literal('address')], {
        description:
          'group: it is in another group than the default one, which no enabled rule chooses; ' +
          'address: a special-purpose address that is no longer in the origin allow list.',
      }),
    }),
    { description: 'Origins that edges send no request to, in the order of the site.' },
  ),
  delivery: Delivery,
});
