// Revisions that saved settings: what they changed can be undone.
import type { EntryKind } from './entry-kind.ts';
import { ENTRY_KINDS } from './entry-kinds.ts';
import type { EntryName } from './write-revision.ts';

/** Revisions that saved no settings, or that made or ended something. */
const OTHERS = new Set([
  'change_undone',
  'cluster_created',
  'rollback',
  'rollout_promoted',
  'rollout_rollback',
  'site_created',
  'site_deleted',
]);

/** Whether settings of the kind are saved and restored for one site or cluster. */
export function isRestorable({ onRollback, scope }: EntryKind): boolean {
  return onRollback !== 'current' && scope === 'cluster';
}

export const RESTORABLE_KINDS: ReadonlySet<string> = new Set(ENTRY_KINDS.filter(isRestorable).map(({ kind }) => kind));

export function isUndoable(reason: string, changed: readonly EntryName[]): boolean {
  return !OTHERS.has(reason) && changed.some(({ kind }) => RESTORABLE_KINDS.has(kind));
}
