// What the address asks for, and its statistics.
import type { Output } from '@contract/procedure.ts';
import { ANALYTICS_RANGES, type AnalyticsRange, analytics } from '@contract/resources/analytics.ts';
import { type ComputedRef, computed } from 'vue';
import { call } from '@/shared/api/call.ts';
import { useLoad } from '@/shared/api/use-load.ts';
import { type Period, periodInput, usePeriod } from '@/shared/period/use-period.ts';
import { useListQuery } from '@/shared/table/list-query.ts';

export type Traffic = Output<typeof analytics.traffic>;
export type Point = Traffic['points'][number];

export interface StatisticsQuery {
  filters: ComputedRef<{ siteId: string; clusterId: string; status: string; percentile: string }>;
  set(change: Partial<StatisticsQuery['filters']['value']>): void;
  period: Period<AnalyticsRange>;
}

export function useStatisticsQuery(): StatisticsQuery {
  const { filters, set } = useListQuery({ siteId: '', clusterId: '', status: 'requests', percentile: 'p95Ms' });
  return { filters, set, period: usePeriod(ANALYTICS_RANGES, '24h') };
}

const EVERY_MS = 60_000;

/** Whose statistics: '' = of none in particular. */
export interface Subject {
  siteId: string;
  clusterId: string;
}

/** All that the page shows of a site, of a cluster, or of all. */
export function useStatistics(period: Period<AnalyticsRange>, { siteId, clusterId }: Subject) {
  const input = computed(() => periodInput(period));
  const asked = computed(() => JSON.stringify([input.value, period.compare]));
  return useLoad(
    async (signal) => {
      const time = input.value;
      const within = { ...time, ...(siteId === '' && clusterId !== '' && { clusterId }) };
      const of = { ...within, ...(siteId !== '' && { siteId }) };
      const [traffic, dimensions, urls, addresses, sites, nodes, rules] = await Promise.all([
        call(analytics.traffic, { ...of, ...(period.compare && { compare: true }) }, { signal }),
        call(analytics.dimensions, of, { signal }),
        call(analytics.topRequests, { ...of, by: 'url' }, { signal }),
        call(analytics.topRequests, { ...of, by: 'ip' }, { signal }),
        siteId === '' ? call(analytics.topSites, { ...within, limit: 10 }, { signal }) : null,
        siteId === '' ? call(analytics.topNodes, { ...within, limit: 10 }, { signal }) : null,
        // Global rules are counted of all sites alone.
        siteId === '' && clusterId !== ''
          ? null
          : call(analytics.topRules, { ...time, ...(siteId !== '' && { siteId }) }, { signal }),
      ]);
      return { traffic, dimensions, urls, addresses, sites, nodes, rules };
    },
    { watch: asked, everyMs: EVERY_MS },
  );
}
