// Adapters of providers that keep single records with an id: changes of sets become as few changes of records as possible.
import { AdapterError, type Change, type ChangeResult, type DnsAdapter } from '../adapter.ts';
import { applyChanges } from './apply.ts';
import { type Budget, budgetOf, reading } from './pause.ts';
import { clampTtl, groupSets, type SingleRecord, type TtlLimits } from './sets.ts';

export interface StoredRecord extends SingleRecord {
  id: string;
}

export type RecordChange =
  | { do: 'create'; record: SingleRecord }
  | { do: 'update'; id: string; record: SingleRecord }
  | { do: 'remove'; id: string };

export interface RecordApi {
  limits: TtlLimits;
  /** Changes of records of one request; 1: no batches. */
  batch: number;
  /** Requests at a time, without batches. */
  parallel: number;
  /** Names up to this number are asked for one by one, more by reading the zone. */
  namesAlone: number;
  /** All records, or those of the name. Throws {@link AdapterError}. */
  read(name: string | null, budget: Budget): Promise<StoredRecord[]>;
  /** Makes the changes, all or none; at most `batch`. Removing a record that is gone is done. Throws {@link AdapterError}. */
  write(changes: readonly RecordChange[], budget: Budget): Promise<void>;
}

/** An id that the provider has not given yet. */
const UNSAVED = '';

export function recordAdapter(api: RecordApi): Pick<DnsAdapter, 'list' | 'apply' | 'serial' | 'test'> {
  return {
    list: async ({ names, signal } = {}) => groupSets(await readNames(api, names, budgetOf(signal))),
    apply: (changes, { signal } = {}) => applyToRecords(api, changes, signal),
    serial: async () => null,
    test: async ({ signal } = {}) => ({ records: (await readNames(api, undefined, budgetOf(signal))).length }),
  };
}

async function readNames(
  api: RecordApi,
  names: readonly string[] | undefined,
  budget: Budget,
): Promise<StoredRecord[]> {
  const distinct = names && [...new Set(names)];
  if (!distinct || distinct.length > api.namesAlone) return reading(budget, () => api.read(null, budget));
  const found: StoredRecord[] = [];
  for (const name of distinct) found.push(...(await reading(budget, () => api.read(name, budget))));
  return found;
}

async function applyToRecords(
  api: RecordApi,
  changes: readonly Change[],
  signal: AbortSignal | undefined,
): Promise<ChangeResult[]> {
  if (changes.length === 0) return [];
  const budget = budgetOf(signal);
  // Read once for all changes; a name that was written since is read again.
  let before: Map<string, StoredRecord[]>;
  try {
    const names = changes.map(({ name }) => name);
    before = Map.groupBy(await readNames(api, names, budget), ({ name }) => name);
  } catch (error) {
    if (!(error instanceof AdapterError)) throw error;
    return changes.map(() => ({ state: 'failed', error }));
  }
  const written = new Set<string>();
  const writer = {
    batch: api.batch,
    parallel: api.batch === 1 ? api.parallel : 1,
    limits: api.limits,
    list: async (names: readonly string[], within: Budget) => groupSets(await readNames(api, names, within)),
    async write(chunk: readonly Change[], within: Budget): Promise<void> {
      const names = [...new Set(chunk.map(({ name }) => name))];
      const again = names.filter((name) => written.has(name));
      const fresh = Map.groupBy(again.length > 0 ? await readNames(api, again, within) : [], ({ name }) => name);
      for (const name of names) written.add(name);
      const records = names.flatMap((name) => (again.includes(name) ? fresh.get(name) : before.get(name)) ?? []);
      await writePlanned(api, chunk, records, within);
    },
  };
  return applyChanges(writer, changes, signal);
}

async function writePlanned(
  api: RecordApi,
  chunk: readonly Change[],
  records: StoredRecord[],
  budget: Budget,
): Promise<void> {
  let done = 0;
  let waiting: RecordChange[] = [];
  for (const change of chunk) {
    let planned = planRecords(change, records, api.limits);
    if (planned.some((one) => one.do !== 'create' && one.id === UNSAVED)) {
      await send();
      const fresh = await readNames(api, [change.name], budget);
      records = [...records.filter(({ name }) => name !== change.name), ...fresh];
      planned = planRecords(change, records, api.limits);
    }
    records = simulate(records, planned);
    // Of several changes of one record the last counts: providers make those of a batch in an order of their own.
    const again = new Set(planned.flatMap((one) => (one.do === 'create' ? [] : one.id)));
    waiting = [...waiting.filter((one) => one.do === 'create' || !again.has(one.id)), ...planned];
  }
  await send();

  async function send(): Promise<void> {
    for (let at = 0; at < waiting.length; at += api.batch) {
      const part = waiting.slice(at, at + api.batch);
      try {
        await api.write(part, budget);
      } catch (error) {
        if (!(error instanceof AdapterError) || done === 0) throw error;
        const { kind, detail, retryAfter } = error;
        throw new AdapterError(kind, detail, { retryAfter, partial: true, cause: error });
      }
      done += part.length;
    }
    waiting = [];
  }
}

/** The fewest changes of records that make the change. Values come before others go, so that the name never empties. */
export function planRecords(change: Change, all: readonly StoredRecord[], limits: TtlLimits): RecordChange[] {
  const { name, type, line = 'default' } = change;
  const records = all.filter((one) => one.name === name && one.type === type && one.line === line);
  if (change.action === 'delete') {
    const { values } = change;
    const going = values ? records.filter(({ value }) => values.includes(value)) : records;
    return going.map(({ id }) => ({ do: 'remove', id }));
  }
  const wanted = new Set(change.values);
  const ttl = clampTtl(change.ttl, limits);
  const kept = new Map<string, StoredRecord>();
  const surplus: StoredRecord[] = [];
  for (const record of records) {
    if (wanted.has(record.value) && !kept.has(record.value)) kept.set(record.value, record);
    else surplus.push(record);
  }
  // Records of a set share their TTL: those that stay give theirs to a value that is added, if that is one to write.
  const ttlOfAppended = clampTtl(records[0]?.ttl ?? ttl, limits);
  const planned: RecordChange[] = [];
  if (change.action === 'append') {
    for (const value of wanted) {
      if (!kept.has(value)) planned.push({ do: 'create', record: { name, type, line, ttl: ttlOfAppended, value } });
    }
    return planned;
  }
  for (const record of kept.values()) {
    if (record.ttl !== ttl) planned.push({ do: 'update', id: record.id, record: { ...bare(record), ttl } });
  }
  for (const value of wanted) {
    if (kept.has(value)) continue;
    const replaced = surplus.shift();
    const record = { name, type, line, ttl, value };
    planned.push(replaced ? { do: 'update', id: replaced.id, record } : { do: 'create', record });
  }
  return [...planned, ...surplus.map(({ id }): RecordChange => ({ do: 'remove', id }))];
}

function bare({ id: _id, ...record }: StoredRecord): SingleRecord {
  return record;
}

function simulate(records: readonly StoredRecord[], planned: readonly RecordChange[]): StoredRecord[] {
  let now = [...records];
  for (const one of planned) {
    if (one.do === 'create') now.push({ ...one.record, id: UNSAVED });
    else if (one.do === 'remove') now = now.filter(({ id }) => id !== one.id);
    else now = now.map((record) => (record.id === one.id ? { ...one.record, id: one.id } : record));
  }
  return now;
}
