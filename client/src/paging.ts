// Going through a list page by page.
import type { Call, OperationName, Options, Output } from './call.ts';

/** Operations that answer pages. */
export type ListName = {
  [N in OperationName]: Output<N> extends { items: unknown[]; total: number } ? N : never;
}[OperationName];

type Item<N extends ListName> = Output<N> extends { items: (infer T)[] } ? T : never;
type Filter<N extends ListName> = Omit<Parameters<Call<N>>[0] & object, 'page'>;

/**
 * Every item of a list, asked for page by page as they are used: `for await (const site of each(client.sites.list))`.
 * What is added or removed meanwhile can make it miss an item or meet one twice, as with any pages.
 */
export async function* each<N extends ListName>(
  list: Call<N>,
  filter: Filter<N> = {} as Filter<N>,
  options?: Options<N>,
): AsyncGenerator<Item<N>, void, undefined> {
  const ask = list as unknown as (input: object, options?: object) => Promise<{ items: Item<N>[]; total: number }>;
  const pageSize = (filter as { pageSize?: number }).pageSize ?? 100;
  for (let page = 1; ; page++) {
    const { items, total } = await ask({ ...filter, page, pageSize }, options);
    yield* items;
    if (items.length < pageSize || page * pageSize >= total) return;
  }
}
