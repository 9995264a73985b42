// What of the logs of a site the address asks for: the time, which stands still until it is asked for anew, and filters.
import type { Input } from '@contract/procedure.ts';
import { logSettings } from '@contract/resources/log-settings.ts';
import type { logs } from '@contract/resources/logs.ts';
import { type ComputedRef, computed, shallowRef, watch } from 'vue';
import { call } from '@/shared/api/call.ts';
import { serverNow } from '@/shared/api/server-clock.ts';
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
  const input = computed(() => {
    if (days.value === undefined) return undefined;
    const earliest = Math.floor(now.value / DAY_MS) * DAY_MS - (days.value - 1) * DAY_MS;
    const latest = now.value + AHEAD_MS;
    const asked = period.zoomed ?? { from: now.value - lengthOf(period.range), to: latest };
    // Rows before the first day are gone; a part that is gone as a whole is refused, which says so.
    const from = asked.to > earliest ? Math.max(asked.from, earliest) : asked.from;
    const to = asked.from < latest ? Math.min(asked.to, latest) : asked.to;
    const time = { from: new Date(from).toISOString(), to: new Date(to).toISOString() };
    return { id: siteId, ...time, ...filterInput(filters.value) } as LogInput;
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
