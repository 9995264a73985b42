interface Query {
  page: number;
  pageSize: number;
}

/** The most that a list answers at once. */
const PAGE_SIZE = 100;

/** One of a list by its id, where no procedure answers it alone; undefined: it is not in it. */
export async function findListed<T extends { id: string }>(
  id: string,
  read: (query: Query) => Promise<{ items: T[]; total: number }>,
): Promise<T | undefined> {
  for (let page = 1; ; page++) {
    const { items, total } = await read({ page, pageSize: PAGE_SIZE });
    const found = items.find((item) => item.id === id);
    if (found || items.length === 0 || page * PAGE_SIZE >= total) return found;
  }
}
