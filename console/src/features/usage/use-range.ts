// The range that the address asks for, as it is now.
import { type ComputedRef, computed } from 'vue';
import { useListQuery } from '@/shared/table/list-query.ts';
import { useClock } from '@/shared/time/clock.ts';
import { dayText, type Range, rangeOf } from './range.ts';

export interface UsageQuery {
  filters: ComputedRef<{ range: string; from: string; to: string; siteId: string; show: string }>;
  set(change: Partial<UsageQuery['filters']['value']>): void;
  range: ComputedRef<Range>;
  /** The same as procedures take it. */
  input: ComputedRef<{ from: string; to: string }>;
}

export function useUsageQuery(): UsageQuery {
  const { filters, set } = useListQuery({ range: 'days7', from: '', to: '', siteId: '', show: 'bytesSent' });
  const now = useClock();
  // Texts, so that a range that stays the same is no change.
  const text = computed(() => {
    const { range, from, to } = filters.value;
    const found = rangeOf(range, from, to, now.value);
    return `${found.from} ${found.to}`;
  });
  const range = computed(() => {
    const [from = 0, to = 0] = text.value.split(' ').map(Number);
    return { from, to };
  });
  return {
    filters,
    set: (change) => {
      const days = { from: dayText(range.value.from), to: dayText(range.value.to - 1) };
      // Who begins to choose days begins with those that are shown.
      set({
        ...(change.range === undefined ? {} : change.range === 'custom' ? days : { from: '', to: '' }),
        ...change,
      });
    },
    range,
    input: computed(() => ({
      from: new Date(range.value.from).toISOString(),
      to: new Date(range.value.to).toISOString(),
    })),
  };
}
