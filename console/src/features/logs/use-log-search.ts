// What of the logs of a site the address asks for: the time, which stands still until it is asked for anew, and filters.
import type { Input } from '@contract/procedure.ts';
import { logSettings } from '@contract/resources/log-settings.ts';
import type { logs } from '@contract/resources/logs.ts';
import { type ComputedRef, computed, shallowRef, watch } from 'vue';
import { call } from '@/shared/api/call.ts';
import { serverNow } from '@/shared/api/server-clock.ts';
import { same } from '@/shared/forms/paths.ts';
import { lengthOf } from '@/shared/period/period.ts';
import { type Period, usePeriod } from '@/shared/period/use-period.ts';
import { useListQuery } from '@/shared/table/list-query.ts';
import { type FilterName, type Filters, filterInput, NO_FILTERS, setFilters } from './filters.ts';

export const LOG_RANGES = ['1h', '3h', '6h', '24h', '7d', '30d'] as const;
type LogRange = (typeof LOG_RANGES)[number];
export type LogInput = Pick<Input<typeof logs.query>, 'id' | 'from' | 'to'> & Record<string, unknown>;

export interface LogSearch {
  period: Period<LogRange>;
  filters: ComputedRef<Filters>;
  /** Filters that are set. */
  chips: ComputedRef<{ name: FilterName; value: string }[]>;
  /** Adds a filter, or with '' takes it away. */
  filter(name: FilterName, value: string): void;
  clear(): void;
  /** What procedures take; undefined until it is known how far back rows are kept. */
  input: ComputedRef<LogInput | undefined>;
  /** Takes a range up to now, and reads all of it again. */
  renew(): void;
}

const DAY_MS = 86_400_000;
/** Times may be a little ahead: clocks of nodes differ. */
const AHEAD_MS = 60_000;

export function useLogSearch(siteId: string): LogSearch {
  const period = usePeriod(LOG_RANGES, '1h');
  const { filters, set, clear } = useListQuery<Filters>({ ...NO_FILTERS });
  const days = shallowRef<number>();
  const now = shallowRef(serverNow());
  const renew = () => {
    now.value = serverNow();
  };
  // A refusal shows where rows are asked for.
  void call(logSettings.get, {}).then(
    ({ retentionDays }) => {
      days.value = retentionDays;
    },
    () => {
      days.value = 1;
    },
  );
  const input = computed<LogInput | undefined>((before) => {
    if (days.value === undefined) return undefined;
    const earliest = Math.floor(now.value / DAY_MS) * DAY_MS - (days.value - 1) * DAY_MS;
    const latest = now.value + AHEAD_MS;
    const range = period.zoomed ?? { from: now.value - lengthOf(period.range), to: latest };
    // Rows before the first day are gone; a part that is gone as a whole is refused, which says so.
    const from = range.to > earliest ? Math.max(range.from, earliest) : range.from;
    const to = range.from < latest ? Math.min(range.to, latest) : range.to;
    const time = { from: new Date(from).toISOString(), to: new Date(to).toISOString() };
    const asked = { id: siteId, ...time, ...filterInput(filters.value) } as LogInput;
    // Other parts of the address change, too: the same search is not made again.
    return before && same(before, asked) ? before : asked;
  });
  watch([() => period.range, () => period.zoomed], renew);
  return {
    period,
    filters,
    chips: computed(() => setFilters(filters.value)),
    filter: (name, value) => set({ [name]: value } as Partial<Filters>),
    clear,
    input,
    renew,
  };
}
