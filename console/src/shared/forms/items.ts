// What is done to a list of things in a form, with keys that stay with each thing wherever it goes. Pure.

export interface Keyed<T> {
  items: readonly T[];
  /** A key for each item. */
  keys: readonly number[];
}

/** Keys for a list that came from elsewhere: those of the places that stay, new ones for what was added. */
export function keysFor(keys: readonly number[], length: number, next: () => number): number[] {
  return Array.from({ length }, (_, index) => keys[index] ?? next());
}

/** With an item put at a place. */
export function insertedAt<T>({ items, keys }: Keyed<T>, index: number, item: T, key: number): Keyed<T> {
  return { items: items.toSpliced(index, 0, item), keys: keys.toSpliced(index, 0, key) };
}

export function removedAt<T>({ items, keys }: Keyed<T>, index: number): Keyed<T> {
  return { items: items.toSpliced(index, 1), keys: keys.toSpliced(index, 1) };
}

/** With an item moved to another place; the same when there is no such place. */
export function movedTo<T>(list: Keyed<T>, from: number, to: number): Keyed<T> {
  if (to < 0 || to >= list.items.length || from === to) return list;
  const [item, key] = [list.items[from] as T, list.keys[from] as number];
  return insertedAt(removedAt(list, from), to, item, key);
}
