// The difference between the records that a zone should have and those that it has, as steps. A pure function: what is foreign
// is never part of a step, new comes before old, and a name with records never loses the last of them on the way.
import type { ResolutionLine } from '../../contract/scalars/resolution-line.ts';
import type { Change, RecordType, RRset } from '../dns/adapters/adapter.ts';

/** Changes of one call at most. */
export const MAX_BATCH = 100;

/** Records of a name, type and line that the zone should have. */
export interface Wanted {
  name: string;
  type: Exclude<RecordType, 'TXT'>;
  line: ResolutionLine;
  ttl: number;
  values: readonly string[];
}

/** What the console has written at a name, or may have. */
export interface Owned {
  /** Every value since the zone was last read back. */
  data: readonly string[];
  /** A reading has shown it: what is there now is the console's, or was put in its place. */
  written: boolean;
}

export interface PlanInput {
  desired: readonly Wanted[];
  /** All records of the zone. */
  actual: readonly RRset[];
  owned: ReadonlyMap<string, Owned>;
  /** TTLs that the provider writes. */
  minTtl: number;
  maxTtl: number;
  /** The records were decided anew: TTLs are written, too. Else a provider that raised a TTL is let be. */
  fresh: boolean;
}

export interface Plan {
  /** Names with the values that are about to be written: registered before the first step. */
  register: { name: string; data: string[] }[];
  /** Calls in their order: addresses, then CNAMEs. */
  writes: Change[][];
  /** Afterwards, when a reading has shown the writes. */
  deletes: Change[][];
  /** Owned names that nothing of the console is left at. */
  release: string[];
  /** Wanted names that have records of others, or records beside which a CNAME cannot be. */
  conflicts: string[];
  /** Names that change between addresses and CNAME: they have no record for a moment. */
  replaced: string[];
}

/** Types that the console writes at names of its own. */
const OURS: ReadonlySet<string> = new Set(['A', 'AAAA', 'CNAME']);

export function planChanges({ desired, actual, owned, minTtl, maxTtl, fresh }: PlanInput): Plan {
  const wanted = Map.groupBy(
    desired.filter(({ values }) => values.length > 0),
    ({ name }) => name,
  );
  const present = Map.groupBy(
    actual.filter(({ values }) => values.length > 0),
    ({ name }) => name,
  );
  const plan: Plan = { register: [], writes: [], deletes: [], release: [], conflicts: [], replaced: [] };
  const addresses: Change[][] = [];
  const cnames: Change[][] = [];
  const deletes: Change[][] = [];
  const clamp = (ttl: number) => Math.min(Math.max(ttl, minTtl), maxTtl);
  const isTtl = (is: number, wish: number) => (fresh ? is === clamp(wish) : is >= clamp(wish));
  for (const [name, sets] of wanted) {
    const there = present.get(name) ?? [];
    if (isForeign(there, owned.get(name)) || (isCname(sets) && there.some(({ type }) => !OURS.has(type)))) {
      plan.conflicts.push(name);
      continue;
    }
    const changes = changesOf(sets, there, clamp, isTtl);
    if (changes.writes.length + changes.removes.length > 0 || !owned.has(name)) {
      plan.register.push({ name, data: [...new Set(sets.flatMap(({ values }) => values))].sort() });
    }
    if (changes.replaces) plan.replaced.push(name);
    // What must go first is of the same call, in its order, so that the name has no record as briefly as can be.
    if (changes.replaces) (isCname(sets) ? cnames : addresses).push([...changes.removes, ...changes.writes]);
    else {
      if (changes.writes.length > 0) (isCname(sets) ? cnames : addresses).push(changes.writes);
      if (changes.removes.length > 0) deletes.push(changes.removes);
    }
  }
  for (const [name, own] of owned) {
    if (wanted.has(name)) continue;
    const removes = removalOf(present.get(name) ?? [], own);
    if (removes.length > 0) deletes.push(removes);
    else plan.release.push(name);
  }
  plan.writes = [...batches(addresses), ...batches(cnames)];
  plan.deletes = batches(deletes);
  return plan;
}

export function isEmpty({ writes, deletes, release, register }: Plan): boolean {
  return writes.length + deletes.length + release.length + register.length === 0;
}

const isCname = (sets: readonly { type: string }[]): boolean => sets.some(({ type }) => type === 'CNAME');
const lineOf = ({ line }: Pick<RRset, 'line'>) => line ?? 'default';
const keyOf = (set: Pick<RRset, 'type' | 'line'>) => `${set.type} ${lineOf(set)}`;

/**
 * Whether records at the name are not the console's. Before a reading has shown a name, records with values that the console
 * never wrote are somebody else's, who was there first; after it, they are a change of ours, and are repaired.
 */
function isForeign(there: readonly RRset[], own: Owned | undefined): boolean {
  const ours = there.filter(({ type }) => OURS.has(type));
  if (ours.length === 0) return false;
  if (own === undefined) return true;
  if (own.written) return false;
  const known = new Set(own.data);
  return ours.some(({ values }) => values.some((value) => !known.has(value)));
}

function changesOf(
  sets: readonly Wanted[],
  there: readonly RRset[],
  clamp: (ttl: number) => number,
  isTtl: (is: number, wish: number) => boolean,
): { writes: Change[]; removes: Change[]; replaces: boolean } {
  const ours = there.filter(({ type }) => OURS.has(type));
  const byKey = new Map(ours.map((set) => [keyOf(set), set]));
  const keys = new Set(sets.map(keyOf));
  const writes = sets.flatMap(({ name, type, line, ttl, values }): Change[] => {
    const is = byKey.get(keyOf({ type, line }));
    const same = is !== undefined && isTtl(is.ttl, ttl) && sameValues(is.values, values);
    return same ? [] : [{ action: 'set', name, type, line, ttl: clamp(ttl), values: [...values].sort() }];
  });
  const removes = ours
    .filter((set) => !keys.has(keyOf(set)))
    .map((set): Change => ({ action: 'delete', name: set.name, type: set.type, line: lineOf(set) }));
  return { writes, removes, replaces: ours.length > 0 && isCname(sets) !== isCname(ours) };
}

/** Of a name that is given up, the values that the console wrote; what others put there since is theirs. */
function removalOf(there: readonly RRset[], { data }: Owned): Change[] {
  const known = new Set(data);
  return there.flatMap((set): Change[] => {
    if (!OURS.has(set.type)) return [];
    const own = set.values.filter((value) => known.has(value));
    if (own.length === 0) return [];
    return [{ action: 'delete', name: set.name, type: set.type, line: lineOf(set), values: own }];
  });
}

function sameValues(one: readonly string[], other: readonly string[]): boolean {
  if (one.length !== other.length) return false;
  const values = new Set(one);
  return other.every((value) => values.has(value));
}

/** Changes of one name stay in one call, as far as they fit into it. */
function batches(groups: readonly (readonly Change[])[]): Change[][] {
  const calls: Change[][] = [];
  let call: Change[] = [];
  for (const group of groups) {
    if (call.length > 0 && call.length + group.length > MAX_BATCH) {
      calls.push(call);
      call = [];
    }
    for (let from = 0; from < group.length; from += MAX_BATCH) {
      const part = group.slice(from, from + MAX_BATCH);
      if (part.length === MAX_BATCH) calls.push(part);
      else call.push(...part);
    }
  }
  if (call.length > 0) calls.push(call);
  return calls;
}
