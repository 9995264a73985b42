import type { FoundAttention } from '../../mixins/attention.ts';
import type { ServiceFeature } from '../../mixins/service-feature.ts';

export const feature = {
  attention: {
    kinds: { clusters_no_nodes: { alert: 'cluster' } },
    async find(_sql, _clusterId, fleet) {
      const { view, counts } = await fleet;
      const enabled = new Map(counts.map((one) => [one.clusterId, one.enabled]));
      return view.spans
        .flatMap(({ clusterId, clusterName, nodes }): (FoundAttention & { count: number })[] => {
          const count = enabled.get(clusterId) ?? 0;
          return nodes === 0 && count > 0 ? [{ kind: 'clusters_no_nodes', clusterId, clusterName, count }] : [];
        })
        .sort((a, b) => b.count - a.count);
    },
  },
} satisfies ServiceFeature;
