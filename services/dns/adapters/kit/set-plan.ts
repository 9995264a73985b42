// What becomes of whole sets, for providers that keep sets: changes of one set are put together.
import type { Change, Line, RRset } from '../adapter.ts';
import { clampTtl, setKey, type TtlLimits } from './sets.ts';

export interface PlannedSet {
  name: string;
  type: string;
  line: Line;
  before: RRset | undefined;
  /** Null: the set is deleted. */
  after: { ttl: number; values: string[] } | null;
  /** Whether the values before count: they must not have changed meanwhile. */
  isMerged: boolean;
}

/** In the order of the last change of each; sets that are as they should be are left out. */
export function planSets(changes: readonly Change[], now: ReadonlyMap<string, RRset>, limits: TtlLimits): PlannedSet[] {
  const planned = new Map<string, PlannedSet>();
  for (const change of changes) {
    const { name, type, line = 'default' } = change;
    const key = setKey(change);
    const earlier = planned.get(key);
    const before = now.get(key);
    const current = earlier ? earlier.after : (before ?? null);
    planned.delete(key);
    planned.set(key, {
      name,
      type,
      line,
      before,
      after: afterOf(change, current, limits),
      isMerged: change.action === 'append' || (change.action === 'delete' && change.values !== undefined),
    });
  }
  return [...planned.values()].filter(({ before, after }) => !isSame(before, after));
}

function afterOf(
  change: Change,
  current: { ttl: number; values: string[] } | null,
  limits: TtlLimits,
): PlannedSet['after'] {
  if (change.action === 'delete') {
    const left = change.values ? (current?.values ?? []).filter((value) => !change.values!.includes(value)) : [];
    return left.length === 0 ? null : { ttl: current!.ttl, values: left };
  }
  const ttl = clampTtl(change.ttl, limits);
  if (change.action === 'set') return { ttl, values: [...new Set(change.values)].sort() };
  const values = [...new Set([...(current?.values ?? []), ...change.values])].sort();
  return { ttl: current?.ttl ?? ttl, values };
}

function isSame(before: RRset | undefined, after: PlannedSet['after']): boolean {
  if (!before || !after) return !before && !after;
  return before.ttl === after.ttl && before.values.join('\n') === after.values.join('\n');
}
