// Sets of records, put together from single ones and compared.
import type { AdapterCapabilities, Change, Line, RRset } from '../adapter.ts';

/** More records than any zone here may have: the list is refused, not cut. */
export const MAX_RECORDS = 100_000;

export interface SingleRecord {
  name: string;
  type: string;
  line: Line;
  ttl: number;
  value: string;
}

export type TtlLimits = Pick<AdapterCapabilities, 'minTtl' | 'maxTtl'>;

export function clampTtl(ttl: number, { minTtl, maxTtl }: TtlLimits): number {
  return Math.min(Math.max(ttl, minTtl), maxTtl);
}

/**
 * Whether a provider keeps the TTL that was asked for. Providers raise values below the minimum of the account's plan,
 * which nobody can ask for: a raised TTL is no drift.
 */
export function ttlHolds(found: number, asked: number, limits: TtlLimits): boolean {
  return found >= clampTtl(asked, limits);
}

export function setKey({ name, type, line = 'default' }: { name: string; type: string; line?: Line }): string {
  return `${name} ${type} ${line}`;
}

/** By name, type and line, values sorted; the smallest TTL of a set is the set's. */
export function groupSets(records: Iterable<SingleRecord>): RRset[] {
  const sets = new Map<string, RRset & { seen: Set<string> }>();
  for (const { name, type, line, ttl, value } of records) {
    const key = setKey({ name, type, line });
    let set = sets.get(key);
    if (!set) {
      set = { name, type, ...(line === 'default' ? {} : { line }), ttl, values: [], seen: new Set() };
      sets.set(key, set);
    }
    set.seen.add(value);
    set.ttl = Math.min(set.ttl, ttl);
  }
  return [...sets.values()].map(({ seen, ...set }) => ({ ...set, values: [...seen].sort() }));
}

/** Whether the sets are as the change leaves them. `exactTtl`: a raised TTL counts as not changed yet. */
export function holds(change: Change, sets: ReadonlyMap<string, RRset>, limits: TtlLimits, exactTtl: boolean): boolean {
  const set = sets.get(setKey(change));
  const values = new Set(set?.values ?? []);
  if (change.action === 'delete') return change.values ? !change.values.some((value) => values.has(value)) : !set;
  if (!change.values.every((value) => values.has(value))) return false;
  if (change.action === 'append') return true;
  if (values.size !== new Set(change.values).size) return false;
  return exactTtl ? set!.ttl === clampTtl(change.ttl, limits) : ttlHolds(set!.ttl, change.ttl, limits);
}

export function setsByKey(sets: readonly RRset[]): Map<string, RRset> {
  return new Map(sets.map((set) => [setKey(set), set]));
}
