import type { ServiceFeature } from '../../mixins/service-feature.ts';
import { writeClusterSetting } from '../../models/clusters/cluster-settings.ts';
import { HEADER_LIMIT, type HeaderLimit, headerLimitKind } from '../../models/clusters/header-limit.entry.ts';

export const feature = {
  restores: [
    {
      kind: headerLimitKind.kind,
      locks: 'cluster',
      whole: true,
      save: (sql, clusterId, _id, settings) =>
        writeClusterSetting(sql, clusterId, HEADER_LIMIT, settings as HeaderLimit),
    },
  ],
} satisfies ServiceFeature;
