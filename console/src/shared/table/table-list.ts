// What a table has to know of its list, wherever the rows come from.
import type { CallError } from '@/shared/api/call-error.ts';
import type { Loaded } from '@/shared/api/use-load.ts';

export interface TableList<Row> {
  /** Undefined until the first answer. */
  readonly items: readonly Row[] | undefined;
  /** How many there are on all pages; with 0 nothing is said below the table. */
  readonly total?: number;
  readonly page?: number;
  readonly pageSize?: number;
  /** The order of the rows, where columns can be sorted by. */
  readonly sort?: string;
  readonly loading?: boolean;
  /** Loading for longer than 300 ms. */
  readonly slow?: boolean;
  readonly error?: CallError | null;
  /** How many filters are set: they may be the reason for an empty list. */
  readonly filtered?: number;
  turn?(page: number): void;
  sortBy?(sort: string): void;
  /** Reads the rows again. */
  reload?(): unknown;
  /** Sets all filters back. */
  clear?(): void;
}

/** The list of an answer that holds all its rows: nothing to turn, nothing to sort. */
export function wholeList<T, Row>(loaded: Loaded<T>, rowsOf: (answer: T) => readonly Row[]): TableList<Row> {
  const items = () => (loaded.data.value === undefined ? undefined : rowsOf(loaded.data.value));
  return {
    get items() {
      return items();
    },
    get total() {
      return items()?.length ?? 0;
    },
    get pageSize() {
      return Math.max(1, items()?.length ?? 0);
    },
    get loading() {
      return loaded.loading.value;
    },
    get slow() {
      return loaded.slow.value;
    },
    get error() {
      return loaded.error.value;
    },
    reload: loaded.reload,
  };
}
