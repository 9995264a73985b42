// All kinds of entries: every `…Kind` that a file of this folder exports.
import { FOUND_KINDS } from '../gen/entry-kinds.ts';
import type { EntryKind } from './kind.ts';

export const ENTRY_KINDS: readonly EntryKind[] = [...FOUND_KINDS];
