// Kind "unknown-hosts": what requests for hosts of no site get. Without an entry they get the 404 page.
import { create, toBinary } from '@bufbuild/protobuf';
import { UnknownHostAction, UnknownHostsSchema } from '../../proto/gen/svc/config/v1/cluster_pb.js';
import { siteOwner } from '../config/entry-owner.ts';
import { singleClusterKind } from '../config/single-cluster-kind.ts';
import type { SettingColumn } from './cluster-settings.ts';

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

export const UNKNOWN_HOSTS: SettingColumn<UnknownHosts> = {
  column: 'unknown_hosts',
  // What was saved before a field came lacks it.
  read: (saved) => ({ ...DEFAULT_UNKNOWN_HOSTS, ...(saved as Partial<UnknownHosts> | null) }),
};

export const unknownHostsKind = singleClusterKind({
  kind: 'unknown-hosts',
  setting: UNKNOWN_HOSTS,
  compilerVersion: 1,
  // A default site that is one no more, because it was deleted.
  bypass: (stable, { defaultSiteId }) =>
    stable.defaultSiteId !== null && defaultSiteId === null ? { ...stable, defaultSiteId } : undefined,
  compile({ unknownHost, ipAccess, defaultSiteId, scan }) {
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
      refs: used && defaultSiteId ? [siteOwner(defaultSiteId)] : [],
    };
  },
});
