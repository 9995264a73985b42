// The order of a list as its column headings show and change it. Pure.

/** How a column is sorted by now: words of aria-sort. */
export function directionOf(sort: string, column: string): 'ascending' | 'descending' | 'none' {
  if (bare(sort) !== bare(column)) return 'none';
  return sort.startsWith('-') ? 'descending' : 'ascending';
}

/** The order after a click on a column: its first direction, then the other one. */
export function nextSort(sort: string, column: string): string {
  if (bare(sort) !== bare(column)) return column;
  return sort.startsWith('-') ? bare(sort) : `-${sort}`;
}

/** A sort from an address, where it may say anything. */
export function knownSort(asked: unknown, fields: readonly string[], initial: string): string {
  return typeof asked === 'string' && fields.includes(bare(asked)) && /^-?[^-]/.test(asked) ? asked : initial;
}

function bare(sort: string): string {
  return sort.startsWith('-') ? sort.slice(1) : sort;
}
