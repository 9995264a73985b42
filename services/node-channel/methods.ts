// Who may call what of the node channel, and from which budget. A method without a line here fails at start: access is declared,
// never inherited.
import { NodeService } from '../../proto/gen/svc/node/v1/node_pb.js';
import type { Lane } from './budgets.ts';

/**
 * stranger: no certificate yet, but a one-time token. node and probe: by the organization of the certificate.
 * probing-node: what a node is besides, while it also probes.
 */
export const PRINCIPALS = ['stranger', 'node', 'probe', 'probing-node'] as const;

export type Principal = (typeof PRINCIPALS)[number];

export interface Method {
  /** Name in the path. */
  name: string;
  callers: readonly Principal[];
  lane: Lane;
}

/** By the path of the service and the name of the method. */
export const DECLARED: Readonly<Record<string, Omit<Method, 'name'>>> = {
  'svc.node.v1.NodeService/Enroll': { callers: ['stranger'], lane: 'control' },
  'svc.node.v1.NodeService/RenewCertificate': { callers: ['node'], lane: 'control' },
  'svc.node.v1.NodeService/Watch': { callers: ['node'], lane: 'control' },
  'svc.node.v1.NodeService/Heartbeat': { callers: ['node'], lane: 'control' },
  'svc.node.v1.NodeService/Applied': { callers: ['node'], lane: 'control' },
  'svc.node.v1.NodeService/GetConfig': { callers: ['node'], lane: 'bulk' },
  'svc.node.v1.NodeService/GetBans': { callers: ['node'], lane: 'bulk' },
  'svc.node.v1.NodeService/GetFeed': { callers: ['node'], lane: 'bulk' },
  'svc.node.v1.NodeService/GetAcmeTokens': { callers: ['node'], lane: 'bulk' },
  'svc.node.v1.NodeService/GetCertificates': { callers: ['node'], lane: 'bulk' },
  'svc.node.v1.NodeService/GetChallengeKeys': { callers: ['node'], lane: 'control' },
  'svc.node.v1.NodeService/GetSessionTicketKeys': { callers: ['node'], lane: 'control' },
  'svc.node.v1.NodeService/ReportBans': { callers: ['node'], lane: 'security' },
  'svc.node.v1.NodeService/ReportLostBans': { callers: ['node'], lane: 'security' },
  'svc.node.v1.NodeService/ReportSecurity': { callers: ['node'], lane: 'security' },
  'svc.node.v1.NodeService/ReportStats': { callers: ['node'], lane: 'telemetry' },
  'svc.node.v1.NodeService/ReportLogs': { callers: ['node'], lane: 'telemetry' },
  'svc.node.v1.NodeService/ReportLogTail': { callers: ['node'], lane: 'tail' },
  'svc.node.v1.NodeService/ReportVitals': { callers: ['node'], lane: 'telemetry' },
  'svc.node.v1.NodeService/TakeTasks': { callers: ['node'], lane: 'control' },
  'svc.node.v1.NodeService/ReportTasks': { callers: ['node'], lane: 'control' },
  'svc.node.v1.NodeService/GetPrefetch': { callers: ['node'], lane: 'control' },
  'svc.node.v1.NodeService/GetPurgeSecret': { callers: ['node'], lane: 'control' },
  'svc.node.v1.NodeService/SubmitPurge': { callers: ['node'], lane: 'control' },
};

/** The services of the channel, as far as access to them is concerned. */
export type Served = readonly { typeName: string; methods: readonly { name: string }[] }[];

/** Methods by request path. Throws for one that is not declared, and for a declaration of none. */
export function declaredMethods(services: Served = [NodeService], declared = DECLARED): ReadonlyMap<string, Method> {
  const methods = new Map<string, Method>();
  for (const { typeName, methods: of } of services) {
    for (const { name } of of) {
      const declaration = declared[`${typeName}/${name}`];
      if (!declaration) throw new Error(`${typeName}/${name} does not declare who may call it`);
      methods.set(`/${typeName}/${name}`, { name, ...declaration });
    }
  }
  for (const path of Object.keys(declared))
    if (!methods.has(`/${path}`)) throw new Error(`${path} is declared and is no method of the node channel`);
  return methods;
}

/** Whether a caller who is any of the principals may call. */
export function mayCall({ callers }: Method, principals: readonly Principal[]): boolean {
  return principals.some((principal) => callers.includes(principal));
}
