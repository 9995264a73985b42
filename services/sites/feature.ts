import type { FoundAttention } from '../../mixins/attention.ts';
import type { ServiceFeature } from '../../mixins/service-feature.ts';
import { MAX_SUBJECTS } from '../../models/alerts/alert.ts';
import { cacheListUsers } from '../../models/cache/cache-list-users.ts';
import type { FleetFacts } from '../../models/overview/fleet-facts.ts';
import { isSilent } from '../../models/overview/overview-sites.ts';
import { sitesWithErrors, sitesWithoutOrigin } from '../../models/sites/alerting-site.ts';
import { type FailingSite, failingSites, MAX_FAILING } from '../../models/sites/failing-site.ts';
import { type DownOrigins, downOrigins } from '../../models/sites/origin-health.ts';
import { siteCacheRestorer } from './restore-cache.ts';
import { siteContentRestorer, siteRequestsRestorer, siteRestorer } from './restore-site.ts';

export const feature = {
  attention: {
    kinds: {
      site_failing: { alert: 'site', most: MAX_FAILING },
      // Where no node has a configuration yet, these are all sites of the cluster.
      sites_unserved: { alert: 'cluster' },
      origins_down: { alert: 'site' },
    },
    async find(sql, clusterId, fleet) {
      const [failing, down, facts] = await Promise.all([
        failingSites(sql, clusterId),
        downOrigins(sql, clusterId),
        fleet,
      ]);
      return [...failing.map(failingItem), ...unservedItems(facts), ...down.map(downItem)];
    },
  },
  restores: [siteRestorer, siteRequestsRestorer, siteContentRestorer, siteCacheRestorer],
  ipListUsers: cacheListUsers,
  alerts: {
    kinds: ['origin_unavailable', 'high_5xx'],
    async find(sql, { nodeOfflineSeconds, errorRatio, minimumRequests, windowMinutes }) {
      const share = { minutes: windowMinutes, ratio: errorRatio, requests: minimumRequests };
      const [down, failing] = await Promise.all([
        sitesWithoutOrigin(sql, nodeOfflineSeconds, MAX_SUBJECTS),
        sitesWithErrors(sql, share, MAX_SUBJECTS),
      ]);
      return [
        ...down.map((id) => ({ kind: 'origin_unavailable', subject: 'site' as const, id })),
        ...failing.map(({ id, percent }) => ({ kind: 'high_5xx', subject: 'site' as const, id, detail: { percent } })),
      ];
    },
  },
} satisfies ServiceFeature;

function unservedItems({ view: { spans }, counts, behind }: FleetFacts): FoundAttention[] {
  const byCluster = new Map(spans.map((span) => [span.clusterId, span]));
  const enabled = new Map(counts.map((one) => [one.clusterId, one.enabled]));
  return behind
    .flatMap(({ clusterId, notServed, pending, named }): (FoundAttention & { count: number })[] => {
      const span = byCluster.get(clusterId);
      // A cluster without a node is named by itself, and so are nodes that are silent.
      if (!span || span.nodes === 0 || isSilent(span)) return [];
      const count = (notServed ?? enabled.get(clusterId) ?? 0) - pending;
      if (count <= 0) return [];
      const sites = named.map((site) => ({ type: 'site' as const, ...site, reason: 'unserved' as const }));
      return [{ kind: 'sites_unserved', clusterId, clusterName: span.clusterName, count, named: sites }];
    })
    .sort((a, b) => b.count - a.count);
}

function downItem({ since, named, ...of }: DownOrigins): FoundAttention {
  const sites = named.map((site) => ({ type: 'site' as const, ...site, reason: null }));
  return { kind: 'origins_down', ...of, at: since?.toISOString() ?? null, named: sites };
}

function failingItem({
  id,
  name,
  clusterId,
  clusterName,
  since,
  percent,
  cause,
  revision,
}: FailingSite): FoundAttention {
  return {
    kind: 'site_failing',
    clusterId,
    clusterName,
    revision,
    at: since.toISOString(),
    count: 1,
    percent,
    problem: cause,
    named: [{ type: 'site', id, name, reason: null }],
    subjects: [id],
  };
}
