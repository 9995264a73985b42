// Moving through the rows of a table by keyboard, and choosing a stretch of them. Pure.

/** The row that a key leads to from row `at` of `count`; null for other keys. */
export function rowAfter(key: string, at: number, count: number): number | null {
  const last = count - 1;
  if (key === 'ArrowDown') return Math.min(at + 1, last);
  if (key === 'ArrowUp') return Math.max(at - 1, 0);
  if (key === 'Home') return 0;
  if (key === 'End') return last;
  return null;
}

/** The rows from one to another, both included, whichever comes first; `from` null or gone: the second alone. */
export function stretch<Row>(
  rows: readonly Row[],
  keyOf: (row: Row) => string,
  from: string | null,
  to: string,
): Row[] {
  const at = (key: string) => rows.findIndex((row) => keyOf(row) === key);
  const end = at(to);
  if (end < 0) return [];
  const start = from === null ? end : at(from);
  const first = start < 0 ? end : start;
  return rows.slice(Math.min(first, end), Math.max(first, end) + 1);
}
