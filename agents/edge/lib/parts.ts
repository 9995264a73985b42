// The parts of one agent. A part is made when another asks for it, so what a part needs is made, started and told before it.
import { errorText, type Log } from '../../kit/log.ts';
import type { AgentEvent } from './agent-event.ts';
import type { NodeReport } from './node-report.ts';
import type { EntryReader, Part, PartKind } from './part.ts';

export class Parts {
  private readonly make: (kind: PartKind) => Part;
  private readonly kinds: readonly PartKind[];
  private readonly log: Log;
  /** In the order of making. */
  private readonly made = new Map<PartKind, Part>();
  private readonly making = new Set<PartKind>();

  constructor(kinds: readonly PartKind[], make: (kind: PartKind) => Part, log: Log) {
    this.kinds = kinds;
    this.make = make;
    this.log = log;
  }

  /** Makes all parts that are not there yet. */
  makeAll(): void {
    for (const kind of this.kinds) this.of(kind);
  }

  of<T extends Part>(kind: PartKind<T>): T {
    const known = this.made.get(kind);
    // The kind is the key of what its own `make` returned.
    if (known) return known as T;
    if (this.making.has(kind)) throw new Error(`part ${kind.name} needs itself`);
    this.making.add(kind);
    const part = this.make(kind);
    this.making.delete(kind);
    this.made.set(kind, part);
    return part as T;
  }

  entryReaders(): readonly EntryReader[] {
    return this.kinds.filter((kind) => kind.readsEntries).map((kind) => this.of(kind) as EntryReader);
  }

  async start(): Promise<void> {
    for (const part of this.made.values()) await part.start?.();
  }

  status(report: NodeReport): void {
    for (const part of this.made.values()) part.status?.(report);
  }

  tell(event: AgentEvent): void {
    for (const part of this.made.values()) part.event?.(event);
  }

  /** One part that fails keeps none of the others from its maintenance. */
  async maintain(): Promise<void> {
    for (const [kind, part] of this.made) await this.attempt('maintenance failed', kind, () => part.maintain?.());
  }

  async stop(): Promise<void> {
    await this.atOnce('part not stopped', (part) => part.stop?.());
  }

  async close(): Promise<void> {
    await this.atOnce('part not closed', (part) => part.close?.());
  }

  private async atOnce(failed: string, call: (part: Part) => void | Promise<void>): Promise<void> {
    await Promise.all([...this.made].map(([kind, part]) => this.attempt(failed, kind, () => call(part))));
  }

  private async attempt(failed: string, kind: PartKind, call: () => void | Promise<void>): Promise<void> {
    try {
      await call();
    } catch (error) {
      this.log.error(failed, { part: kind.name, error: errorText(error) });
    }
  }
}
