export interface Column {
  key: string;
  label: string;
  /** `number` is set right; `time` stays on one line; `actions` keeps to the end of the row and has no visible heading. */
  kind?: 'text' | 'number' | 'time' | 'actions';
  /** Left out below 860 px, unless a person asks for it there. */
  wideOnly?: boolean;
  /** Takes the room that is left. */
  grow?: boolean;
  /** Field of the list procedure's `sort`; with - before it when its first click sorts from the last to the first. */
  sort?: string;
}

/** Columns that a person may leave out: all but the first, which names the row, and the actions. */
export function optional(columns: readonly Column[]): readonly Column[] {
  return columns.slice(1).filter(({ kind }) => kind !== 'actions');
}

/** What stays of the columns when those are left out; a key that no optional column has means nothing. */
export function shownOf(columns: readonly Column[], hidden: readonly string[]): readonly Column[] {
  const out = new Set(optional(columns).flatMap(({ key }) => (hidden.includes(key) ? [key] : [])));
  return columns.filter(({ key }) => !out.has(key));
}

/** What is left out until a person chooses: where there is little room, the columns for wide screens. */
export function hiddenAtFirst(columns: readonly Column[], narrow: boolean): readonly string[] {
  return narrow ? columns.filter(({ wideOnly }) => wideOnly).map(({ key }) => key) : [];
}

/** What was kept in the browser; null where that is nothing, or no list. */
export function readHidden(kept: string | null): string[] | null {
  try {
    const value: unknown = JSON.parse(kept ?? 'null');
    return Array.isArray(value) ? value.filter((key) => typeof key === 'string') : null;
  } catch {
    return null;
  }
}
