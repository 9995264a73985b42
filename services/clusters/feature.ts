import { MAX_ATTENTION } from '../../contract/resources/overview.ts';
import type { FoundAttention, ServiceFeature } from '../../mixins/service-feature.ts';

export const feature = {
  async attention(_sql, _clusterId, fleet) {
    const { spans, counts } = await fleet;
    const enabled = new Map(counts.map((one) => [one.clusterId, one.enabled]));
    return spans
      .flatMap(({ clusterId, clusterName, nodes }): (FoundAttention & { count: number })[] => {
        const count = enabled.get(clusterId) ?? 0;
        return nodes === 0 && count > 0 ? [{ kind: 'clusters_no_nodes', clusterId, clusterName, count }] : [];
      })
      .sort((a, b) => b.count - a.count)
      .slice(0, MAX_ATTENTION);
  },
} satisfies ServiceFeature;
