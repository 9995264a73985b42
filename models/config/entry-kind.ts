// Kinds of configuration entries. The subject that stores a resource registers the kind compiled from it with a file
// `<name>.entry.ts` that exports it as `…Kind`.
import type { Knex } from 'knex';

/** What a kind compiles to; null = the cluster has no such entry (any more). */
export interface CompiledEntry {
  body: Uint8Array;
  /** Capabilities the entry needs, sorted. */
  features: string[];
  /** What it refers to: `list:<id>`, `domain:<name>`, `group:<site>/<name>`, … */
  refs: string[];
  /**
   * The settings it was compiled from: what a rollback would put back. Never a secret; none where the source is one or
   * travels by another feed, or where a rollback leaves it as it is.
   */
  settings?: object;
}

/** A reference with what refers to it. */
export interface Reference {
  /** After the colon. */
  name: string;
  /** Of the entry that refers to it. */
  owner: string | null;
}

/** Owners by what a rollback does to them. */
export interface RollbackOwners {
  /** Their saved settings are put back, so that what nobody has is theirs. */
  restoring: ReadonlySet<string>;
  /** Something of theirs that differed stays as it is now. Of all others nodes get everything as it was. */
  staying: ReadonlySet<string>;
}

/** Answers those of the references whose target is gone, or is another's, in the cluster. */
export type Provision = (
  sql: Knex,
  clusterId: string,
  references: readonly Reference[],
  owners: RollbackOwners,
) => Promise<Missing[]>;

/** What a reference leads to no more. */
export interface Missing extends Reference {
  /** Type of the target, as clients name it. */
  type: string;
  /** The target's name as far as it is known. */
  label: string;
}

/**
 * What of a change nodes outside of a canary get at once: all of it, nothing, or what is answered for the settings that
 * they run (undefined: nothing; null: no entry) and the entry as it is now. None of the rest may be in the answer.
 */
export type Bypass = boolean | ((stable: object, now: CompiledEntry | null) => CompiledEntry | null | undefined);

/** Settings that entries of another kind have where renewed ones are to run, by id, as far as they are known. */
export type Beside = (kind: string, ids: readonly string[]) => Promise<ReadonlyMap<string, object>>;

export interface EntryKind {
  readonly kind: string;
  /** Raised with every change of the bytes a compiler makes from the same rows. */
  readonly compilerVersion: number;
  readonly bypass: Bypass;
  /**
   * Whether a change of the settings can make requests go elsewhere: then errors of origins count as caused by it. Without
   * it none of the kind can.
   */
  routes?(before: object, after: object): boolean;
  readonly onRollback: 'restore' | 'current' | 'dropIfDisabled';
  /** What the resource is without an entry; settings of the past that lack a field have it of these. */
  readonly defaults?: object;
  /** Compiles settings as {@link CompiledEntry.settings} has them; null when they do what the defaults do. */
  compileSettings?(settings: object): CompiledEntry | null;
  /** Fields of the settings that stay as they are now when an earlier revision is put back. */
  readonly keptOnRollback?: readonly string[];
  /** The settings as people read them, where they are stored otherwise. */
  shown?(settings: object): object;
  /**
   * Of entries that are the parts of one thing with settings each: the thing's id. They are told and put back together;
   * what they show has no field twice.
   */
  partOf?(id: string): string;
  /** What entries refer to and this kind's resource provides, by the word before the colon of a reference or owner. */
  readonly provides?: Readonly<Record<string, Provision>>;
  /** Largest body in bytes; 64 KiB unless given (templates). */
  readonly maxBodyBytes?: number;
  /** Kinds whose entry of the cluster, id "", is compiled from the rows of these as well: it follows when one ends. */
  readonly dependsOn?: readonly string[];
  /**
   * What comes of published settings, by id of the entry, with what they refer to as it is now; null: no entry. Kinds that
   * have it are put back with it, and a change of what they refer to reaches nodes by it (ChangedEntry.renews).
   */
  renewed?(
    sql: Knex,
    settings: ReadonlyMap<string, object>,
    beside: Beside,
  ): Promise<Map<string, CompiledEntry | null>>;
  /** `platform` kinds hold the same entry in every cluster. */
  readonly scope: 'cluster' | 'platform';
  /** What the entry of this id belongs to and ends with (owner.ts); null: the cluster itself. */
  ownerOf(id: string): string | null;
  /** Compiles the entry from the rows of its own resource, and nothing else. Several ids in one set-based query. */
  compile(sql: Knex, clusterId: string, ids: readonly string[]): Promise<Map<string, CompiledEntry>>;
  /** Ids of all entries of the kind that the cluster should have; for new clusters and verification. */
  list(sql: Knex, clusterId: string): AsyncIterable<string[]>;
}
