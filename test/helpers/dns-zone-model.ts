// A zone that misbehaves as providers do, and what must hold of it after every single change.
import type { Change, ChangeResult, DnsAdapter, RRset } from '../../services/dns/adapters/adapter.ts';
import { AdapterError } from '../../services/dns/adapters/adapter.ts';
import type { Owned } from '../../services/scheduler/plan.ts';
import type { Registry } from '../../services/scheduler/reconcile.ts';

export const FAULTS = [
  'none',
  'timeout_before',
  'timeout_after',
  'partial',
  'empty_list',
  'list_fails',
  'kill',
] as const;
export type Fault = (typeof FAULTS)[number];

/** Ends an engine where it is. */
export class Killed extends Error {}

const OURS = new Set(['A', 'AAAA', 'CNAME']);

export class ModelZone implements DnsAdapter {
  /** By name, type and line. */
  readonly sets = new Map<string, RRset>();
  /** Faults of the next calls, one each. */
  faults: Fault[] = [];
  /** Told after every change of a set. */
  onChange: (change: Change) => void = () => undefined;

  static key({ name, type, line }: Pick<RRset, 'name' | 'type' | 'line'>): string {
    return `${name} ${type} ${line ?? 'default'}`;
  }

  put(set: RRset): void {
    this.sets.set(ModelZone.key(set), { ...set, values: [...set.values].sort() });
  }

  hasAddress(name: string): boolean {
    return [...this.sets.values()].some((set) => set.name === name && OURS.has(set.type) && set.values.length > 0);
  }

  snapshot(): string[] {
    return [...this.sets.values()].map((set) => `${ModelZone.key(set)} ${set.values.join(',')}`).sort();
  }

  async list(): Promise<RRset[]> {
    const fault = this.faults.shift();
    if (fault === 'kill') throw new Killed();
    if (fault === 'empty_list') return [];
    if (fault === 'list_fails' || fault === 'timeout_before') throw new AdapterError('timeout');
    return structuredClone([...this.sets.values()]);
  }

  async apply(changes: readonly Change[]): Promise<ChangeResult[]> {
    const fault = this.faults.shift();
    if (fault === 'timeout_before') return this.#all(changes, 'unknown');
    const upTo = fault === 'partial' || fault === 'kill' ? Math.floor(changes.length / 2) : changes.length;
    for (const change of changes.slice(0, upTo)) this.#make(change);
    if (fault === 'kill') throw new Killed();
    if (fault === 'timeout_after') return this.#all(changes, 'unknown');
    return changes.map((_, index) =>
      index < upTo ? { state: 'done' } : { state: 'failed', error: new AdapterError('unavailable') },
    );
  }

  #all(changes: readonly Change[], state: 'unknown'): ChangeResult[] {
    return changes.map(() => ({ state, error: new AdapterError('timeout') }));
  }

  #make(change: Change): void {
    const key = ModelZone.key(change as RRset);
    const before = this.sets.get(key);
    const { name, type, line = 'default' } = change;
    if (change.action === 'delete') {
      const left = (before?.values ?? []).filter(
        (value) => change.values !== undefined && !change.values.includes(value),
      );
      if (left.length > 0) this.put({ ...before!, values: left });
      else this.sets.delete(key);
    } else {
      const other = change.type === 'CNAME' ? ['A', 'AAAA'] : ['CNAME'];
      const clash = [...this.sets.values()].some((set) => set.name === name && other.includes(set.type));
      // As servers do: the two cannot be beside each other.
      if (clash) throw new Error(`CNAME and addresses at ${name}`);
      this.put({ name, type, line, ttl: change.ttl, values: change.values });
    }
    this.onChange(change);
  }

  async serial(): Promise<null> {
    return null;
  }
  async zones(): Promise<string[]> {
    return [];
  }
  async test(): Promise<{ records: number }> {
    return { records: this.sets.size };
  }
}

/** A registry that outlives the engines that use it. */
export class ModelRegistry implements Registry {
  readonly names = new Map<string, { data: string[]; written: boolean }>();

  async owned(): Promise<ReadonlyMap<string, Owned>> {
    return structuredClone(this.names);
  }
  async register(names: readonly { name: string; data: readonly string[] }[]): Promise<ReadonlySet<string>> {
    for (const { name, data } of names) {
      const own = this.names.get(name) ?? { data: [], written: false };
      this.names.set(name, { ...own, data: [...new Set([...own.data, ...data])].sort() });
    }
    return new Set(names.map(({ name }) => name));
  }
  async confirm(names: readonly { name: string; data: readonly string[] }[]): Promise<void> {
    for (const { name, data } of names)
      if (this.names.has(name)) this.names.set(name, { data: [...data], written: true });
  }
  async release(names: readonly string[]): Promise<void> {
    for (const name of names) this.names.delete(name);
  }
}
