// Kind "unknown-hosts": what requests for hosts of no site get. Without an entry they get the 404 page.
import { create, toBinary } from '@bufbuild/protobuf';
import { UnknownHostAction, UnknownHostsSchema } from '../../proto/gen/svc/config/v1/cluster_pb.js';
import { singleClusterKind } from './single-cluster-kind.ts';

/** As saved in cluster.unknown_hosts. */
export interface UnknownHosts {
  unknownHost: 'page' | 'close' | 'site';
  ipAccess: 'page' | 'close' | 'site';
  defaultSiteId: string | null;
  defaultCertificate: boolean;
  scan: { enabled: boolean; threshold: number; banSeconds: number };
}

export const DEFAULT_UNKNOWN_HOSTS: UnknownHosts = {
  unknownHost: 'page',
  ipAccess: 'page',
  defaultSiteId: null,
  defaultCertificate: false,
  scan: { enabled: false, threshold: 100, banSeconds: 3600 },
};

const ACTIONS: Record<UnknownHosts['unknownHost'], UnknownHostAction> = {
  page: UnknownHostAction.PAGE,
  close: UnknownHostAction.CLOSE,
  site: UnknownHostAction.SITE,
};

export const unknownHostsKind = singleClusterKind<Partial<UnknownHosts>>({
  kind: 'unknown-hosts',
  column: 'unknown_hosts',
  compilerVersion: 1,
  compile(saved) {
    const { unknownHost, ipAccess, defaultSiteId, scan } = { ...DEFAULT_UNKNOWN_HOSTS, ...saved };
    if (unknownHost === 'page' && ipAccess === 'page' && !scan.enabled) return null;
    const used = unknownHost === 'site' || ipAccess === 'site';
    const message = create(UnknownHostsSchema, {
      unknownHost: ACTIONS[unknownHost],
      ipAccess: ACTIONS[ipAccess],
      defaultSiteId: used ? (defaultSiteId ?? '') : '',
      ...(scan.enabled ? { scan } : {}),
    });
    return {
      body: toBinary(UnknownHostsSchema, message),
      features: [...(scan.enabled ? ['challenge-v1'] : []), 'unknown-host-v1'],
      refs: [],
    };
  },
});
