// What the address asks for, and its statistics.
import type { Output } from '@contract/procedure.ts';
import { ANALYTICS_RANGES, type AnalyticsRange, analytics } from '@contract/resources/analytics.ts';
import { type ComputedRef, computed } from 'vue';
import { call } from '@/shared/api/call.ts';
import { useLoad } from '@/shared/api/use-load.ts';
import { useListQuery } from '@/shared/table/list-query.ts';

export type Traffic = Output<typeof analytics.traffic>;
export type Point = Traffic['points'][number];

export interface StatisticsQuery {
  filters: ComputedRef<{ range: string; siteId: string; status: string; percentile: string }>;
  set(change: Partial<StatisticsQuery['filters']['value']>): void;
  range: ComputedRef<AnalyticsRange>;
}

export function useStatisticsQuery(): StatisticsQuery {
  const { filters, set } = useListQuery({ range: '24h', siteId: '', status: 'requests', percentile: 'p95Ms' });
  const range = computed(() => ANALYTICS_RANGES.find((known) => known === filters.value.range) ?? '24h');
  return { filters, set, range };
}

const EVERY_MS = 60_000;

/** All that the page shows of a site, or of all with ''. */
export function useStatistics(range: ComputedRef<AnalyticsRange>, siteId: string) {
  return useLoad(
    async (signal) => {
      const asked = { range: range.value, ...(siteId !== '' && { siteId }) };
      const [traffic, dimensions, sites, nodes] = await Promise.all([
        call(analytics.traffic, asked, { signal }),
        call(analytics.dimensions, asked, { signal }),
        siteId === '' ? call(analytics.topSites, { range: range.value, limit: 10 }, { signal }) : null,
        siteId === '' ? call(analytics.topNodes, { range: range.value, limit: 10 }, { signal }) : null,
      ]);
      return { traffic, dimensions, sites, nodes };
    },
    { watch: range, everyMs: EVERY_MS },
  );
}
