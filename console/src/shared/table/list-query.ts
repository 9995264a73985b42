// Filters, order and page of a list, kept in the address: a colleague who opens the link sees the same, and Back goes back.
import { type ComputedRef, computed, type WritableComputedRef } from 'vue';
import { type LocationQueryRaw, useRoute, useRouter } from 'vue-router';
import { knownSort } from './sort.ts';

export interface ListQuery<F extends Record<string, string>> {
  filters: ComputedRef<F>;
  page: WritableComputedRef<number>;
  /** A change goes to the first page. */
  sort: WritableComputedRef<string>;
  pageSize: number;
  /** Sets filters and goes to the first page. */
  set(change: Partial<F>): void;
  clear(): void;
  /** How many filters differ from their defaults. */
  filtered: ComputedRef<number>;
  /** Filters that are set, order, page and size: the input of a list procedure. */
  input: ComputedRef<Partial<F> & { page: number; pageSize: number }>;
}

/** Fields of the list procedure's `sort`, and the order it has by itself. */
export interface ListOrder {
  fields: readonly string[];
  initial: string;
}

/** `defaults` names the filters; each is a text in the address and left out while it has its default. */
export function useListQuery<F extends Record<string, string>>(
  defaults: F,
  pageSize = 50,
  order: ListOrder = { fields: [], initial: '' },
): ListQuery<F> {
  const route = useRoute();
  const router = useRouter();
  const filters = computed(() => {
    const read = (name: string) => {
      const value = route.query[name];
      return typeof value === 'string' ? value : (defaults[name] as string);
    };
    return Object.fromEntries(Object.keys(defaults).map((name) => [name, read(name)])) as F;
  });
  const write = (values: F, page: number) => {
    const query: LocationQueryRaw = { ...route.query };
    for (const [name, value] of Object.entries(values)) {
      if (value === defaults[name]) delete query[name];
      else query[name] = value;
    }
    if (page > 1) query.page = String(page);
    else delete query.page;
    return query;
  };
  const page = computed({
    get: () => Math.max(1, Math.trunc(Number(route.query.page)) || 1),
    set: (value: number) => void router.push({ query: write(filters.value, value) }),
  });
  const sort = computed({
    get: () => knownSort(route.query.sort, order.fields, order.initial),
    set: (value: string) => {
      const { page: _page, sort: _sort, ...query } = route.query;
      void router.replace({ query: value === order.initial ? query : { ...query, sort: value } });
    },
  });
  return {
    filters,
    page,
    sort,
    pageSize,
    set: (change) => void router.replace({ query: write({ ...filters.value, ...change }, 1) }),
    clear: () => void router.replace({ query: write(defaults, 1) }),
    filtered: computed(() => Object.entries(filters.value).filter(([name, value]) => value !== defaults[name]).length),
    input: computed(() => {
      const set = Object.entries(filters.value).filter(([, value]) => value !== '');
      const ordered = sort.value === order.initial ? {} : { sort: sort.value };
      return { ...(Object.fromEntries(set) as Partial<F>), ...ordered, page: page.value, pageSize };
    }),
  };
}
