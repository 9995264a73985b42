// All kinds of entries, one line each.
import type { EntryKind } from './kind.ts';

export const ENTRY_KINDS: readonly EntryKind[] = [];
