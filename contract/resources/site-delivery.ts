// How far a site has reached the nodes, and what is left to do before visitors reach it.
import Type from 'typebox';
import { Id, Nullable, Timestamp } from '../scalars/common.ts';

export const Delivery = Type.Object({
  state: Type.Union([Type.Literal('pending'), Type.Literal('partial'), Type.Literal('live'), Type.Literal('disabled')]),
  totalNodes: Type.Integer({ minimum: 0, description: 'Online active nodes of the cluster.' }),
  servingNodes: Type.Integer({
    minimum: 0,
    description: 'Of those, nodes that run the site in any version; for a disabled site, nodes still running it.',
  }),
  currentNodes: Type.Integer({
    minimum: 0,
    description: 'Nodes that run the latest version with a healthy data plane.',
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
  delivery: Delivery,
});
