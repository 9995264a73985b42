// Filters and page of a list, kept in the address: a colleague who opens the link sees the same, and Back goes back.
import { type ComputedRef, computed, type WritableComputedRef } from 'vue';
import { type LocationQueryRaw, useRoute, useRouter } from 'vue-router';

export interface ListQuery<F extends Record<string, string>> {
  filters: ComputedRef<F>;
  page: WritableComputedRef<number>;
  pageSize: number;
  /** Sets filters and goes to the first page. */
  set(change: Partial<F>): void;
  clear(): void;
  /** Whether any filter differs from its default. */
  filtered: ComputedRef<boolean>;
  /** Filters that are set, page and size: the input of a list procedure. */
  input: ComputedRef<Partial<F> & { page: number; pageSize: number }>;
}

/** `defaults` names the filters; each is a text in the address and left out while it has its default. */
export function useListQuery<F extends Record<string, string>>(defaults: F, pageSize = 50): ListQuery<F> {
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
  return {
    filters,
    page,
    pageSize,
    set: (change) => void router.replace({ query: write({ ...filters.value, ...change }, 1) }),
    clear: () => void router.replace({ query: write(defaults, 1) }),
    filtered: computed(() => Object.entries(filters.value).some(([name, value]) => value !== defaults[name])),
    input: computed(() => {
      const set = Object.entries(filters.value).filter(([, value]) => value !== '');
      return { ...(Object.fromEntries(set) as Partial<F>), page: page.value, pageSize };
    }),
  };
}
