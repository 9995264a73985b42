// Rows of a live list stay where they are while somebody points at them or has the focus in them: nobody presses what has
// moved under the pointer.
import { type ComputedRef, computed, ref, shallowRef } from 'vue';

/**
 * The rows in the order they had: with their new values where they are still there, and as they were where not. `changed` is
 * how many came or went meanwhile.
 */
export function heldRows<Row>(
  before: readonly Row[],
  now: readonly Row[],
  keyOf: (row: Row) => string,
): { rows: Row[]; changed: number } {
  const present = new Map(now.map((row) => [keyOf(row), row]));
  const rows = before.map((row) => present.get(keyOf(row)) ?? row);
  const shown = new Set(before.map(keyOf));
  const came = now.filter((row) => !shown.has(keyOf(row))).length;
  const gone = before.filter((row) => !present.has(keyOf(row))).length;
  return { rows, changed: came + gone };
}

export interface HeldRows<Row> {
  rows: ComputedRef<readonly Row[] | undefined>;
  /** Rows that came or went and are not shown as such. */
  changed: ComputedRef<number>;
  /** Whether they stay where they are. */
  hold(held: boolean): void;
}

export function useHeldRows<Row>(source: () => readonly Row[] | undefined, keyOf: (row: Row) => string): HeldRows<Row> {
  const holding = ref(false);
  const kept = shallowRef<readonly Row[]>([]);
  const state = computed(() => {
    const now = source();
    return holding.value && now ? heldRows(kept.value, now, keyOf) : { rows: now, changed: 0 };
  });
  return {
    rows: computed(() => state.value.rows),
    changed: computed(() => state.value.changed),
    hold: (held) => {
      // What is kept is what is shown when it begins.
      if (held !== holding.value) kept.value = source() ?? [];
      holding.value = held;
    },
  };
}
