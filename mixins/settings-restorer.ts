// How settings of the past are saved again; a service's feature.ts lists its own as `restores`.
import type { Knex } from 'knex';
import type { EntryName } from '../models/config/write-revision.ts';

export interface SettingsRestorer {
  /** Kind of the entries that are compiled from the settings (models/config/entry-kind.ts). */
  readonly kind: string;
  /** Whose row is locked for it: the site of the id, or the cluster. */
  readonly locks: 'site' | 'cluster';
  /** Fields that stay as they are saved, beside those that a rollback keeps. */
  readonly keeps?: readonly string[];
  /** Fields that follow from something else: they are no settings. */
  readonly derived?: readonly string[];
  /** The settings go as a whole: they have one of several forms, with fields of its own. */
  readonly whole?: boolean;
  /** Ids of the entries of one thing; its own id unless given. */
  ids?(id: string): string[];
  /** What a save of these fields (dotted paths) publishes beside the entries of the thing. */
  beside?(sql: Knex.Transaction, id: string, paths: readonly string[]): Promise<EntryName[]>;
  /**
   * Saves settings as snapshots have them, under the lock and without publishing. What belongs to another now is left
   * out: the rollback is refused for it.
   */
  save(sql: Knex.Transaction, clusterId: string, id: string, settings: object, now: Date): Promise<void>;
}
