// What a form sends, and how two people's edits of one thing come together. Pure.
import { copy, same, setAt, valueAt } from './paths.ts';

type Values = Record<string, unknown>;

export interface Conflict {
  path: string;
  mine: unknown;
  theirs: unknown;
}

/** For each path of a conflict, whose value is kept. */
export type Choices = Readonly<Record<string, 'mine' | 'theirs'>>;

/** The conflicts in which the other value is kept. */
export function theirsOf(conflicts: readonly Conflict[], choices: Choices): Conflict[] {
  return conflicts.filter(({ path }) => choices[path] === 'theirs');
}

/** Paths whose value differs from the one the form began with. */
export function changedPaths(base: Values, draft: Values, paths: readonly string[]): string[] {
  return paths.filter((path) => !same(valueAt(base, path), valueAt(draft, path)));
}

/** Groups that the server replaces, and so are sent with all their fields; `all`: it replaces everything. */
export type Whole = readonly string[] | 'all';

/** Input with the changed fields alone, and all fields of what the server replaces. */
export function changedInput(base: Values, draft: Values, paths: readonly string[], whole: Whole): Values {
  const input: Values = {};
  const changed = changedPaths(base, draft, paths);
  for (const path of whole === 'all' && changed.length > 0 ? paths : changed) {
    const group = path.split('.', 1)[0] as string;
    if (whole !== 'all' && whole.includes(group)) input[group] = copy(draft[group]);
    else setAt(input, path, copy(valueAt(draft, path) ?? null));
  }
  return input;
}

/**
 * My edits on top of what somebody else saved meanwhile. Fields that both changed, to different values, are conflicts:
 * they keep mine until a person chooses.
 */
export function merge(
  base: Values,
  mine: Values,
  theirs: Values,
  paths: readonly string[],
): { merged: Values; conflicts: Conflict[] } {
  const merged = copy(theirs);
  const conflicts: Conflict[] = [];
  for (const path of changedPaths(base, mine, paths)) {
    const [ours, others] = [valueAt(mine, path), valueAt(theirs, path)];
    if (!same(valueAt(base, path), others) && !same(ours, others)) conflicts.push({ path, mine: ours, theirs: others });
    setAt(merged, path, copy(ours ?? null));
  }
  return { merged, conflicts };
}
