// All kinds of entries: every `…Kind` that a file `<subject>/<name>.entry.ts` exports.
import { FOUND_KINDS } from '../gen/entry-kinds.ts';
import type { EntryKind } from './entry-kind.ts';

export const ENTRY_KINDS: readonly EntryKind[] = [...FOUND_KINDS];

/** Undefined for a kind that only a newer console knows. */
export function findKind(name: string): EntryKind | undefined {
  return ENTRY_KINDS.find(({ kind }) => kind === name);
}

/** Throws where there is no such kind. */
export function kindNamed(name: string): EntryKind {
  const kind = findKind(name);
  if (!kind) throw new Error(`entry kind ${name} does not exist`);
  return kind;
}
