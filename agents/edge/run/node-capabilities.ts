// What this node can do: what the data plane says it can, and what the agent does by itself.
import type { Capability } from '../../../contract/capabilities.ts';
import { readTextIfPresent, writeFileAtomic } from '../../kit/files.ts';
import type { Log } from '../../kit/log.ts';

const KERNEL_BANS: Capability = 'kernel-ban-v1';
const METRICS: Capability = 'metrics-v1';
/** No entry asks for these: they say what becomes of those that ask for something else, and which sets it can run. */
const FOLLOWS: readonly Capability[] = ['partial-config-v1', 'canary-v1', 'feeds-v1'];

/** What the agent can do by itself on some machine; the data plane takes entries that ask for it. */
export const AGENT_CAPABILITIES: readonly Capability[] = [KERNEL_BANS, METRICS];

const MAX_NAMES = 1000;
const NAME = /^[a-z0-9-]{1,64}$/;

/** The last answer of the data plane holds while it is silent, across a restart of the agent too. */
export class NodeCapabilities {
  private readonly path: string;
  private readonly log: Log;
  private dataPlane: readonly string[];
  /** What the agent can do by itself, as long as it works. */
  private readonly offers: { capability: Capability; works: () => boolean }[] = [];
  private failing = false;

  constructor(path: string, log: Log) {
    this.path = path;
    this.log = log;
    this.dataPlane = this.read();
  }

  /** Takes what the data plane answered. A name that only a newer console knows is reported like any other. */
  observe(answered: readonly string[]): void {
    const names = clean(answered);
    // A data plane that does not speak of capabilities yet says nothing about them.
    if (names.length === 0) return;
    const changed = names.join() !== this.dataPlane.join();
    this.dataPlane = names;
    if (changed || this.failing) this.write();
  }

  /** Adds a capability of the agent, which the node has while `works` is true. */
  offer(capability: Capability, works: () => boolean): void {
    this.offers.push({ capability, works });
  }

  /** Names of everything this node can do now, sorted. */
  names(): ReadonlySet<string> {
    const offered = this.offers.filter(({ works }) => works()).map(({ capability }) => capability);
    return new Set([...this.dataPlane, METRICS, ...FOLLOWS, ...offered].sort());
  }

  /** Whether the node has all these capabilities now. */
  has(names: readonly string[]): boolean {
    const own = this.names();
    return names.every((name) => own.has(name));
  }

  private read(): readonly string[] {
    try {
      const text = readTextIfPresent(this.path);
      const names: unknown = text === undefined ? [] : JSON.parse(text);
      return Array.isArray(names) ? clean(names) : [];
    } catch (error) {
      // The data plane tells it again.
      this.log.warn('data plane capabilities not read', { path: this.path, error });
      return [];
    }
  }

  private write(): void {
    try {
      writeFileAtomic(this.path, `${JSON.stringify(this.dataPlane)}\n`);
      this.failing = false;
    } catch (error) {
      if (!this.failing) this.log.warn('data plane capabilities not stored', { path: this.path, error });
      this.failing = true;
    }
  }
}

function clean(names: readonly unknown[]): string[] {
  return [...new Set(names.filter((name): name is string => typeof name === 'string' && NAME.test(name)))]
    .sort()
    .slice(0, MAX_NAMES);
}
