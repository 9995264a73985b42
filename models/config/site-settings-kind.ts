// Kinds of which a site has at most one entry, compiled from settings that the site has in a table of its own.
import type { Knex } from 'knex';
import type { CompiledEntry, EntryKind } from './entry-kind.ts';
import { siteOwner } from './entry-owner.ts';

const LIST_BATCH = 1000;

export interface SavedSettings<S extends object> {
  /** Table with a row for each site that saved settings, and the column with the settings. */
  table: string;
  column?: string;
  /** Column with the id of the site. */
  key?: string;
  /** What a site without a row has, and what a saved field that is missing has. */
  defaults: S;
}

/** What all such kinds share; `own` is what differs, with its version and `compile`. */
export function siteSettingsKind<S extends object>(
  kind: string,
  { table, key = 'site_id', defaults }: SavedSettings<S>,
  own: Pick<EntryKind, 'compile' | 'compilerVersion'> & Partial<EntryKind>,
): EntryKind {
  return {
    kind,
    bypass: false,
    onRollback: 'restore',
    defaults,
    scope: 'cluster',
    ownerOf: siteOwner,
    list: (sql, clusterId) => sitesOf(sql, table, key, clusterId),
    ...own,
  };
}

/** `compile` of a kind whose entry needs nothing but its settings; null for those that do what the defaults do. */
export function compileEach<S extends object>(
  { table, column = 'settings', key = 'site_id', defaults }: SavedSettings<S>,
  entryOf: (settings: S) => CompiledEntry | null,
): EntryKind['compile'] {
  return async (sql, clusterId, ids) => {
    const { rows } = await sql.raw<{ rows: { id: string; settings: Partial<S> }[] }>(
      `select ${key} as id, ${column} as settings from ${table} where cluster_id = ? and ${key} = any(?)`,
      [clusterId, ids as never],
    );
    const compiled = new Map<string, CompiledEntry>();
    for (const { id, settings } of rows) {
      const entry = entryOf({ ...defaults, ...settings });
      if (entry) compiled.set(id, entry);
    }
    return compiled;
  };
}

/** Ids of the sites of a cluster that have a row in the table. */
async function* sitesOf(sql: Knex, table: string, key: string, clusterId: string): AsyncGenerator<string[]> {
  let after = '';
  for (;;) {
    const { rows } = await sql.raw<{ rows: { id: string }[] }>(
      `select ${key} as id from ${table} where cluster_id = ? and ${key} > ? order by ${key} limit ?`,
      [clusterId, after, LIST_BATCH],
    );
    if (rows.length === 0) return;
    yield rows.map(({ id }) => id);
    after = rows.at(-1)!.id;
  }
}
