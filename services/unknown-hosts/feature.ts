import type { ServiceFeature } from '../../mixins/service-feature.ts';
import { type UnknownHosts, unknownHostsKind } from '../../models/clusters/unknown-hosts.entry.ts';
import { writeUnknownHosts } from '../../models/clusters/unknown-hosts-setting.ts';
import { keepEnabledSite } from '../../models/sites/site.ts';

export const feature = {
  restores: [
    {
      kind: unknownHostsKind.kind,
      locks: 'cluster',
      async save(sql, clusterId, _id, given) {
        const settings = given as UnknownHosts;
        const { defaultSiteId } = settings;
        const there = defaultSiteId !== null && (await keepEnabledSite(sql, clusterId, defaultSiteId));
        await writeUnknownHosts(sql, clusterId, there ? settings : { ...settings, defaultSiteId: null });
      },
    },
  ],
} satisfies ServiceFeature;
