// Which time the charts of a page show, in the address: a range or the part that somebody zoomed into, whether the time before is
// shown beside it, and in which zone times are written.
import { computed } from 'vue';
import { useRoute, useRouter } from 'vue-router';
import { useListQuery } from '@/shared/table/list-query.ts';
import { type Zoomed, zoomedOf } from './period.ts';

export interface Period<R extends string = string> {
  readonly ranges: readonly R[];
  readonly range: R;
  /** null: the whole range is shown. */
  readonly zoomed: Zoomed | null;
  readonly compare: boolean;
  readonly utc: boolean;
  choose(range: string): void;
  setCompare(on: boolean): void;
  setUtc(on: boolean): void;
  /** Milliseconds. Back leads out again. */
  zoom(from: number, to: number): void;
  zoomOut(): void;
}

const iso = (ms: number) => new Date(ms).toISOString();

export function usePeriod<R extends string>(ranges: readonly R[], initial: R): Period<R> {
  const route = useRoute();
  const router = useRouter();
  const { filters, set } = useListQuery({ range: initial as string, from: '', to: '', compare: '', zone: '' });
  const range = computed(() => ranges.find((known) => known === filters.value.range) ?? initial);
  const zoomed = computed(() => zoomedOf(filters.value.from, filters.value.to));
  const withoutZoom = { from: '', to: '' };
  return {
    ranges,
    get range() {
      return range.value;
    },
    get zoomed() {
      return zoomed.value;
    },
    get compare() {
      return filters.value.compare === '1';
    },
    get utc() {
      return filters.value.zone === 'utc';
    },
    choose: (chosen) => set({ ...withoutZoom, range: chosen }),
    setCompare: (on) => set({ compare: on ? '1' : '' }),
    setUtc: (on) => set({ zone: on ? 'utc' : '' }),
    zoom: (from, to) => void router.push({ query: { ...route.query, from: iso(from), to: iso(to) } }),
    zoomOut: () => set(withoutZoom),
  };
}

/** The period as procedures with `range`, `from` and `to` take it. */
export function periodInput<R extends string>({
  range,
  zoomed,
}: Period<R>): { range: R } | { from: string; to: string } {
  return zoomed ? { from: iso(zoomed.from), to: iso(zoomed.to) } : { range };
}
