// Parts: the agent is a list of them. A feature folder brings its own in a file `<name>.part.ts`, which the register collects.
import type { EntryKey } from '../../../proto/gen/svc/config/v1/entry_pb.js';
import type { NodeChannel } from '../../kit/channel-client.ts';
import type { Log } from '../../kit/log.ts';
import type { AgentOptions } from '../agent-options.ts';
import type { DataPlane } from '../caddy/data-plane.ts';
import type { EntryObserver } from '../config/config-store.ts';
import type { AgentEvent } from './agent-event.ts';
import type { NodeReport } from './node-report.ts';

/** The calls that the agent makes to a part. A part has the ones that it needs. */
export interface Part {
  /** Begins to work. Files were read before, when the part was made. Parts start one after another, in the order of making. */
  start?(): void | Promise<void>;
  /** Adds to the next heartbeat and to the status file. */
  status?(report: NodeReport): void;
  /** Hears what happened: at the console, in the data plane, in other parts. Parts hear it in the order of making. */
  event?(event: AgentEvent): void;
  /** Cleans up, every 30 seconds. */
  maintain?(): void | Promise<void>;
  /** Stops to call the console and the data plane. All parts stop at the same time. */
  stop?(): void | Promise<void>;
  /** Closes files, after all parts and the data plane have stopped. */
  close?(): void | Promise<void>;
}

/** Names an entry of the configuration. */
export type EntryName = Pick<EntryKey, 'kind' | 'id'>;

/** A part that reads entries of the configuration, from the first read of the journal on. */
export interface EntryReader extends Part {
  readonly entries: EntryObserver;
  /** Resolves, soon in any case, when the data plane has the files that these entries (undefined: all) name; undefined: now. */
  ready?(entries: readonly EntryName[] | undefined): Promise<void> | undefined;
}

/** What a part is made with. */
export interface EdgeNode {
  readonly options: AgentOptions;
  readonly log: Log;
  /** Aborts when the agent begins to stop. */
  readonly stopping: AbortSignal;
  /** The connection to the console; undefined once the agent stops. */
  channel(): NodeChannel | undefined;
  /** The connection while the console responds. */
  reached(): NodeChannel | undefined;
  /** Opens one more connection to the console, with the identity of now. The caller closes it. */
  openChannel(): NodeChannel;
  /** Another part, which is made first if it is not there yet. */
  of<T extends Part>(kind: PartKind<T>): T;
  /** All parts that read entries. */
  entryReaders(): readonly EntryReader[];
  /** Tells all parts. */
  tell(event: AgentEvent): void;
  /** Sends a heartbeat soon, and writes the status file. */
  reportSoon(): void;
  /** Writes the status file soon. */
  showSoon(): void;
  /** Runs `work` periodically until the agent stops, never twice at a time. */
  every(periodMs: number, name: string, work: () => Promise<void>): void;
}

export interface PartKind<T extends Part = Part> {
  readonly name: string;
  /** The part is made before the journal of the configuration is read, so its `make` may not ask for the configuration. */
  readonly readsEntries?: boolean;
  /** Makes the part for this data plane. Throws when the disk cannot be used. */
  make(node: EdgeNode, dataPlane: DataPlane): T;
}

/** A kind of part whose instances read entries. */
export function entryReaderPart<T extends EntryReader>(kind: Omit<PartKind<T>, 'readsEntries'>): PartKind<T> {
  return { ...kind, readsEntries: true };
}
