// Rows chosen in a list, over its pages: what was chosen stays while one looks elsewhere in the same list.
import { type ComputedRef, computed, shallowRef } from 'vue';
import { MAX_ITEMS } from '@/shared/bulk/run-bulk.ts';

export interface Selection<Row> {
  rows: ComputedRef<readonly Row[]>;
  has(key: string): boolean;
  /** Chooses rows, or no longer; never more than a bulk action takes. */
  set(rows: readonly Row[], chosen: boolean): void;
  drop(keys: readonly string[]): void;
  clear(): void;
}

export function useSelection<Row>(keyOf: (row: Row) => string): Selection<Row> {
  const chosen = shallowRef<ReadonlyMap<string, Row>>(new Map());
  const change = (edit: (map: Map<string, Row>) => void) => {
    const next = new Map(chosen.value);
    edit(next);
    chosen.value = next;
  };
  return {
    rows: computed(() => [...chosen.value.values()]),
    has: (key) => chosen.value.has(key),
    set: (rows, on) =>
      change((map) => {
        for (const row of rows) {
          if (!on) map.delete(keyOf(row));
          else if (map.size < MAX_ITEMS) map.set(keyOf(row), row);
        }
      }),
    drop: (keys) =>
      change((map) => {
        for (const key of keys) map.delete(key);
      }),
    clear: () => change((map) => map.clear()),
  };
}
