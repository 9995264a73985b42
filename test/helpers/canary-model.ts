// What the rules say that nodes of a canary and all others run: versions of entries of any kind, by name.
import { bodyOf, type Settings } from './canary-cluster.ts';

/** What is known of an entry: settings with a switch that must not wait, or a text of one that waits as a whole. */
export type Version = Settings | string;

const isSwitched = (version: Version | null | undefined): version is Settings =>
  typeof version === 'object' && version !== null;
const textOf = (version: Version) => (isSwitched(version) ? bodyOf(version) : version);

/** Texts by name, as nodes should have them. */
export const texts = (versions: ReadonlyMap<string, Version>) =>
  Object.fromEntries([...versions].map(([name, version]) => [name, textOf(version)]).sort());

export class CanaryModel {
  readonly stable: Map<string, Version>;
  /** What the canary has over the stable versions; null where it has none of the name. */
  readonly overlay = new Map<string, Version | null>();
  /** What was stable at each revision that nodes could be told to run. */
  readonly published = new Map<string, Map<string, Version>>();
  enabled = false;
  running = false;
  readonly #staysAtRollback: (name: string) => boolean;

  /** `stable`: what a new cluster has; `staysAtRollback`: whether a rollback leaves the entry as everybody has it. */
  constructor(stable: ReadonlyMap<string, Version>, staysAtRollback: (name: string) => boolean) {
    this.stable = new Map(stable);
    this.#staysAtRollback = staysAtRollback;
  }

  get candidate(): Map<string, Version> {
    const all = new Map(this.stable);
    for (const [name, version] of this.overlay) set(all, name, version);
    return all;
  }

  save(name: string, version: Version | null): void {
    if (!this.enabled && !this.running) {
      set(this.stable, name, version);
      return;
    }
    const stable = this.stable.get(name);
    if (isSwitched(stable) && isSwitched(version) && stable.on !== version.on) {
      this.stable.set(name, { ...stable, on: version.on });
    }
    this.#over(name, version);
  }

  /** Deleted with its owner: everywhere at once. */
  end(name: string): void {
    this.stable.delete(name);
    this.#over(name, null);
  }

  promote(): void {
    this.#become(this.candidate);
  }

  rollBack(revision: string): void {
    const then = [...this.published.get(revision)!].filter(([name]) => !this.#staysAtRollback(name));
    const now = [...this.stable].filter(([name]) => this.#staysAtRollback(name));
    this.#become(new Map([...then, ...now]));
  }

  abort(): void {
    this.overlay.clear();
    this.running = false;
  }

  #become(versions: ReadonlyMap<string, Version>): void {
    this.stable.clear();
    for (const [name, version] of versions) this.stable.set(name, version);
    this.abort();
  }

  #over(name: string, version: Version | null): void {
    const stable = this.stable.get(name);
    const same = version === null ? stable === undefined : stable !== undefined && textOf(stable) === textOf(version);
    if (same) this.overlay.delete(name);
    else this.overlay.set(name, version);
    this.running = this.overlay.size > 0;
  }
}

function set(versions: Map<string, Version>, name: string, version: Version | null): void {
  if (version === null) versions.delete(name);
  else versions.set(name, version);
}
