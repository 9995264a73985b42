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
}

export const DEFAULT_UNKNOWN_HOSTS: UnknownHosts = {
  unknownHost: 'page',
  ipAccess: 'page',
  defaultSiteId: null,
  defaultCertificate: false,
};

const ACTIONS: Record<UnknownHosts['unknownHost'], UnknownHostAction> = {
  page: UnknownHostAction.PAGE,
  close: UnknownHostAction.CLOSE,
  site: UnknownHostAction.SITE,
};

export const unknownHostsKind = singleClusterKind<UnknownHosts>({
  kind: 'unknown-hosts',
  column: 'unknown_hosts',
  compilerVersion: 1,
  compile({ unknownHost, ipAccess, defaultSiteId }) {
    if (unknownHost === 'page' && ipAccess === 'page') return null;
    const used = unknownHost === 'site' || ipAccess === 'site';
    const message = create(UnknownHostsSchema, {
      unknownHost: ACTIONS[unknownHost],
      ipAccess: ACTIONS[ipAccess],
      defaultSiteId: used ? (defaultSiteId ?? '') : '',
    });
    return { body: toBinary(UnknownHostsSchema, message), features: ['unknown-host-v1'], refs: [] };
  },
});
