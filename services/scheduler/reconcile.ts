// Brings one zone to what was decided for a cluster. Each round reads the zone and does what comes next: writes while something
// is missing, deletes once a reading shows that nothing is. A run that ends anywhere leaves the rest to the next one.
import { setTimeout as sleep } from 'node:timers/promises';
import { AdapterError, type Change, type DnsAdapter, type RRset } from '../dns/adapters/adapter.ts';
import { type Owned, type Plan, planChanges, type Wanted } from './plan.ts';

/** Rounds of one run: writes, deletes, the last reading, and readings that come too early. */
const MAX_ROUNDS = 6;
/** A zone without any record is rather one that was not read. It is believed when it was read so that many times in a row. */
const EMPTY_READINGS = 3;
/** A call to the provider; it makes its own retries. */
const CALL_MS = 120_000;

/** Where the names of the cluster at this access are registered. */
export interface Registry {
  owned(): Promise<ReadonlyMap<string, Owned>>;
  /** Returns those that are the cluster's. */
  register(names: readonly { name: string; data: readonly string[] }[]): Promise<ReadonlySet<string>>;
  confirm(names: readonly { name: string; data: readonly string[] }[]): Promise<void>;
  release(names: readonly string[]): Promise<void>;
}

export interface ReconcileInput {
  adapter: DnsAdapter;
  desired: readonly Wanted[];
  registry: Registry;
  minTtl: number;
  maxTtl: number;
  fresh: boolean;
  /** Whether nobody else works on the cluster: asked before each call that changes something. */
  mayGoOn(): Promise<boolean>;
  signal: AbortSignal;
  /** Before a reading that repeats one; provider are a moment behind themselves. */
  pauseMs?: number;
}

export interface Reconciled {
  conflicts: string[];
  /** Changes that were made. */
  changes: number;
}

/** Another engine works on the cluster, or this one is to stop. */
export class Superseded extends Error {}

/** Throws {@link AdapterError} and {@link Superseded}; whatever was done until then stays. */
export async function reconcileZone(input: ReconcileInput): Promise<Reconciled> {
  const { registry, signal, pauseMs = 1_000 } = input;
  let [changes, fresh] = [0, input.fresh];
  for (let round = 1; round <= MAX_ROUNDS; round++) {
    const actual = await readZone(input);
    const owned = await registry.owned();
    const plan = planChanges({ ...input, actual, owned, fresh });
    if (plan.writes.length > 0) {
      const calls = await registered(input, plan);
      await applyAll(input, calls);
      changes += calls.length;
      // The provider may keep other TTLs than it was given; the values are what counts now.
      fresh = false;
    } else if (plan.deletes.length > 0) {
      await applyAll(input, plan.deletes);
      changes += plan.deletes.length;
    } else {
      await settle(input, plan, actual, owned);
      return { conflicts: plan.conflicts, changes };
    }
    if (round > 1) await sleep(pauseMs, undefined, { signal });
  }
  throw new AdapterError('unavailable', 'the zone does not show what was written');
}

async function readZone({ adapter, signal, pauseMs = 1_000 }: ReconcileInput): Promise<readonly RRset[]> {
  for (let reading = 1; ; reading++) {
    const actual = await adapter.list({ signal: within(signal) });
    if (actual.length > 0 || reading >= EMPTY_READINGS) return actual;
    await sleep(pauseMs, undefined, { signal });
  }
}

/** Registers the names; what another cluster has meanwhile is left out. */
async function registered({ registry, mayGoOn }: ReconcileInput, plan: Plan): Promise<Change[][]> {
  if (!(await mayGoOn())) throw new Superseded();
  const names = plan.register.filter(({ data }) => data.length > 0);
  const ours = await registry.register(names);
  const lost = new Set(names.filter(({ name }) => !ours.has(name)).map(({ name }) => name));
  if (lost.size === 0) return plan.writes;
  return plan.writes.map((call) => call.filter(({ name }) => !lost.has(name))).filter((call) => call.length > 0);
}

async function applyAll({ adapter, mayGoOn, signal }: ReconcileInput, calls: readonly Change[][]): Promise<void> {
  for (const call of calls) {
    if (!(await mayGoOn())) throw new Superseded();
    const results = await adapter.apply(call, { signal: within(signal) });
    for (const result of results) if (result.state !== 'done') throw result.error;
  }
}

/** A reading shows what should be: it is known from now on, and names that are given up are free. */
async function settle(
  { desired, registry, mayGoOn }: ReconcileInput,
  { conflicts, release }: Plan,
  actual: readonly RRset[],
  owned: ReadonlyMap<string, Owned>,
): Promise<void> {
  const contested = new Set(conflicts);
  const present = Map.groupBy(actual, ({ name }) => name);
  const wanted = Map.groupBy(desired, ({ name }) => name);
  const confirmed = [...wanted]
    .filter(([name]) => owned.has(name) && !contested.has(name) && present.has(name))
    .map(([name, sets]) => ({ name, data: [...new Set(sets.flatMap(({ values }) => values))].sort() }))
    .filter(({ name, data }) => {
      const own = owned.get(name)!;
      return !own.written || own.data.length !== data.length || own.data.some((value, index) => value !== data[index]);
    });
  if (confirmed.length + release.length === 0) return;
  if (!(await mayGoOn())) throw new Superseded();
  await registry.confirm(confirmed);
  await registry.release(release);
}

function within(signal: AbortSignal): AbortSignal {
  return AbortSignal.any([signal, AbortSignal.timeout(CALL_MS)]);
}
