// What differs between two versions of settings, field by field, as an operator reads it.

export interface FieldChange {
  /** Dotted; elements of lists by their number. */
  path: string;
  /** Absent: there was none. */
  from?: unknown;
  /** Absent: there is none. */
  to?: unknown;
}

/** Fields that differ, in the order of their paths. A list of words or numbers is one field. */
export function settingsDiff(from: object, to: object): FieldChange[] {
  const found: FieldChange[] = [];
  compare('', from, to, found);
  return found.sort((a, b) => a.path.localeCompare(b.path, 'en', { numeric: true }));
}

function compare(path: string, from: unknown, to: unknown, found: FieldChange[]): void {
  // What is new or gone as a whole is told by its fields, too.
  const before = partsOf(from) ?? (from === undefined && partsOf(to) ? {} : null);
  const after = partsOf(to) ?? (to === undefined && partsOf(from) ? {} : null);
  const sameForm = from === undefined || to === undefined || Array.isArray(from) === Array.isArray(to);
  if (before && after && sameForm) {
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
      compare(path === '' ? key : `${path}.${key}`, before[key], after[key], found);
    }
  } else if (JSON.stringify(from) !== JSON.stringify(to)) {
    found.push({ path, ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) });
  }
}

/** What is compared part by part: objects, and lists of them. */
function partsOf(value: unknown): Record<string, unknown> | null {
  if (typeof value !== 'object' || value === null) return null;
  if (Array.isArray(value) && (value.length === 0 || value.some((each) => typeof each !== 'object'))) return null;
  return value as Record<string, unknown>;
}
