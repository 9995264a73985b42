import Type from 'typebox';
import { resource } from '../procedure.ts';
import { Decimal, Id, Nullable } from '../scalars/common.ts';
import { settings } from '../settings.ts';
import { LackingNode } from './client-ip.ts';

/** Of either protocol. */
export const MAX_LISTEN_PORTS = 16;

const ListenPorts = (protocol: string) =>
  Type.Array(Type.Integer({ minimum: 1, maximum: 65535 }), {
    maxItems: MAX_LISTEN_PORTS,
    description: `Ports for ${protocol} besides 80 and 443, which every node has; sorted, each once.`,
  });

const ports = { httpPorts: ListenPorts('HTTP'), httpsPorts: ListenPorts('HTTPS') };
const state = {
  ...ports,
  unsupportedNodes: Type.Array(LackingNode, {
    description: 'Active nodes without the capability edge-ports-v1, at most 100.',
  }),
};

export const listenPorts = resource(
  'clusters.listenPorts',
  settings({
    path: '/clusters/{clusterId}/listen-ports',
    of: { clusterId: Id },
    reads: 'Returns the ports that sites of a cluster may use besides 80 and 443.',
    saves: 'Replaces the ports that sites of a cluster may use besides 80 and 443; open connections continue.',
    change: ports,
    output: Type.Object(state),
    saved: Type.Object({ ...state, revision: Nullable(Decimal) }),
    audit: 'cluster.listen_ports_update',
    errors: ['CLUSTER_NOT_FOUND'],
    saveErrors: ['LISTEN_PORT_CONFLICT', 'LISTEN_PORT_IN_USE'],
  }),
);
