// Lists in pages, read whole or not at all: a list that changes while it is read is read again.
import { AdapterError } from '../adapter.ts';
import { MAX_RECORDS } from './sets.ts';

const MAX_PAGES = 10_000;

export interface PageOf<T> {
  items: readonly T[];
  /** Items of all pages; null: the provider does not say. */
  total: number | null;
  /** Without a total: whether there are further pages. */
  more?: boolean;
}

/** `page` counts from 0; `before` is the number of items of the pages before. Throws {@link AdapterError}. */
export async function readPages<T>(
  idOf: (item: T) => string,
  read: (page: number, before: number) => Promise<PageOf<T>>,
): Promise<T[]> {
  const found = new Map<string, T>();
  let seen = 0;
  for (let page = 0; page < MAX_PAGES; page++) {
    const { items, total, more = false } = await read(page, seen);
    for (const item of items) found.set(idOf(item), item);
    seen += items.length;
    if (seen > MAX_RECORDS) throw new AdapterError('invalid', `more than ${MAX_RECORDS} records`);
    const isOver = total === null ? !more : seen >= total || items.length === 0;
    if (!isOver) continue;
    // An item that moved between pages is there twice, or not at all.
    if (total !== null && found.size !== total) throw new AdapterError('unavailable', 'the list changed meanwhile');
    return [...found.values()];
  }
  throw new AdapterError('invalid', `more than ${MAX_PAGES} pages`);
}
