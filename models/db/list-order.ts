// The order of a list, from the `sort` of its procedure.

/** The words that may follow `sort=` for these fields. */
export type Sort<Field extends string> = Field | `-${Field}`;

/**
 * `order by` for a list: by the column of the field asked for, made total by the id. Both go the same way, so that one
 * index on both serves either direction.
 */
export function orderBy<Field extends string>(
  sort: Sort<Field>,
  columns: Readonly<Record<Field, string>>,
  id: string,
): string {
  const descending = sort.startsWith('-');
  const column = columns[(descending ? sort.slice(1) : sort) as Field];
  const direction = descending ? 'desc' : 'asc';
  return `order by ${column} ${direction}, ${id} ${direction}`;
}
