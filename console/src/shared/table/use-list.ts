// A list that the server pages, in one object: what the address asks for, the answer, and what a table needs of both.
// Its members are read where they are shown; taken out of it they would not change any more.
import type { AnyProcedure, Input, Output } from '@contract/procedure.ts';
import { computed } from 'vue';
import { call } from '@/shared/api/call.ts';
import { type LoadOptions, useLoad } from '@/shared/api/use-load.ts';
import { type ListOrder, useListQuery } from './list-query.ts';
import type { TableList } from './table-list.ts';

type Filters = Record<string, string>;

/** A row of the list that the procedure answers. */
export type RowOf<P> = Output<P> extends { items: readonly (infer Row)[] } ? Row : never;

/** What the address asks for; texts, of which the contract knows what they may be. */
export type Asked<F extends Filters> = Partial<F> & { page: number; pageSize: number; sort?: string };

export interface ListOptions<F extends Filters> extends Omit<LoadOptions, 'watch' | 'everyMs' | 'immediate'> {
  /** The filters, each with the value that it has when nobody set it. */
  filters?: F;
  /** Rows of a page; default 50. */
  pageSize?: number;
  order?: ListOrder;
  /** The procedure's input, where it is not just what the address asks for. */
  input?: (asked: Asked<F>) => object;
}

export interface List<Row, F extends Filters, Answer> extends TableList<Row> {
  /** The whole answer. */
  readonly answer: Answer | undefined;
  readonly filters: F;
  /** Sets filters and goes to the first page. */
  set(change: Partial<F>): void;
  readonly total: number;
  readonly page: number;
  readonly pageSize: number;
  readonly sort: string;
  readonly filtered: number;
  turn(page: number): void;
  sortBy(sort: string): void;
  reload(): Promise<void>;
  clear(): void;
}

/** The list that `procedure` answers, by the filters, order and page in the address. */
export function useList<P extends AnyProcedure, F extends Filters = Record<never, string>>(
  procedure: P,
  options: ListOptions<F> = {},
): List<RowOf<P>, F, Output<P>> {
  const { filters = {} as F, pageSize, order, input: from = (asked) => asked, ...load } = options;
  const query = useListQuery<F>(filters, pageSize, order);
  const input = computed(() => from(query.input.value));
  type Answer = Output<P> & { items: readonly RowOf<P>[]; total?: number };
  const { data, error, loading, slow, reload } = useLoad(
    (signal) => call(procedure, input.value as Input<P>, { signal }) as Promise<Answer>,
    { ...load, watch: input },
  );
  return {
    get answer() {
      return data.value;
    },
    get items() {
      return data.value?.items;
    },
    get total() {
      return data.value?.total ?? data.value?.items.length ?? 0;
    },
    get page() {
      return query.page.value;
    },
    pageSize: query.pageSize,
    get sort() {
      return query.sort.value;
    },
    get loading() {
      return loading.value;
    },
    get slow() {
      return slow.value;
    },
    get error() {
      return error.value;
    },
    get filters() {
      return query.filters.value;
    },
    get filtered() {
      return query.filtered.value;
    },
    set: query.set,
    clear: query.clear,
    turn: (page) => {
      query.page.value = page;
    },
    sortBy: (sort) => {
      query.sort.value = sort;
    },
    reload,
  };
}
