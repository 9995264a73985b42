import { pageOf } from '../../contract/page.ts';

/** The page of a list that is short enough to be read as a whole. */
export function pageIn<T>(rows: readonly T[], input: Parameters<typeof pageOf>[0]): { items: T[]; total: number } {
  const { limit, offset } = pageOf(input);
  return { items: rows.slice(offset, offset + limit), total: rows.length };
}
