import type { ServiceFeature } from '../../mixins/service-feature.ts';
import { CLIENT_IP, type ClientIp, clientIpKind } from '../../models/clusters/client-ip.entry.ts';
import { writeClusterSetting } from '../../models/clusters/cluster-settings.ts';

export const feature = {
  restores: [
    {
      kind: clientIpKind.kind,
      locks: 'cluster',
      whole: true,
      save: (sql, clusterId, _id, settings) => writeClusterSetting(sql, clusterId, CLIENT_IP, settings as ClientIp),
    },
  ],
} satisfies ServiceFeature;
