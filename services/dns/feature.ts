import { MAX_NAMED } from '../../contract/resources/overview.ts';
import type { FoundAttention } from '../../mixins/attention.ts';
import type { ServiceFeature } from '../../mixins/service-feature.ts';
import { MAX_SUBJECTS } from '../../models/alerts/alert.ts';
import { dnsAttention, nodesWithoutConfiguredAddress, type UnaddressedNode } from '../../models/dns/engine.ts';
import { specialRange } from '../../proto/address-policy.ts';

export const feature = {
  attention: {
    kinds: {
      dns_failed: { alert: 'cluster' },
      // Alerts of it have a name of their own.
      dns_blocked: { alert: null },
      nodes_no_address: { alert: 'node' },
    },
    async find(sql, clusterId) {
      const [found, nodes] = await Promise.all([
        dnsAttention(sql, clusterId),
        nodesWithoutConfiguredAddress(sql, clusterId),
      ]);
      return [
        ...found.map(({ at, ...one }) => ({ ...one, at: at?.toISOString() ?? null })),
        ...unaddressed(nodes.filter(({ reported }) => reported.every((address) => specialRange(address) !== null))),
      ];
    },
  },
  alerts: {
    kinds: ['dns_mass_removal_blocked'],
    async find(sql) {
      const blocked = (await dnsAttention(sql, null)).filter(({ kind }) => kind === 'dns_blocked');
      return blocked
        .slice(0, MAX_SUBJECTS)
        .map((one) => ({ kind: 'dns_mass_removal_blocked', subject: 'cluster', id: one.clusterId }));
    },
  },
} satisfies ServiceFeature;

/** One item for each cluster. */
function unaddressed(nodes: readonly UnaddressedNode[]): FoundAttention[] {
  return [...Map.groupBy(nodes, (node) => node.clusterId)].map(([clusterId, own]) => ({
    kind: 'nodes_no_address',
    clusterId,
    clusterName: own[0]!.clusterName,
    count: own.length,
    named: own.slice(0, MAX_NAMED).map(({ id, name }) => ({ type: 'node', id, name, reason: null })),
    subjects: own.map(({ id }) => id),
  }));
}
