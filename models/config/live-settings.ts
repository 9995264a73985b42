// The settings that nodes run, of entries whose kind keeps them.
import type { Knex } from 'knex';
import type { EntryName } from './write-revision.ts';

/** By id of the entry; those without settings are absent. */
export interface LiveSettings {
  stable: Map<string, object>;
  /** What a canary has over the stable ones. */
  canary: Map<string, object>;
}

export async function liveSettings(
  sql: Knex,
  clusterId: string,
  kind: string,
  ids: readonly string[],
): Promise<LiveSettings> {
  const { rows } = await sql.raw<{ rows: { id: string; track: 'S' | 'C'; settings: object }[] }>(
    `select e.resource_id as id, e.track, s.settings::jsonb as settings from config_entry e
       join config_settings s on s.hash = e.settings_hash
      where e.cluster_id = ? and e.kind = ? and e.resource_id = any(?) and e.to_revision is null
        and e.blob_hash is not null`,
    [clusterId, kind, ids as never],
  );
  const on = (track: 'S' | 'C') =>
    new Map(rows.filter((row) => row.track === track).map(({ id, settings }) => [id, settings]));
  return { stable: on('S'), canary: on('C') };
}

/** An entry that nodes run. */
export interface RunEntry {
  /** Null: not kept. */
  settings: object | null;
  refs: string[];
}

/**
 * What nodes run of these entries, by `kind id`: what a canary tries, where one runs, else what all nodes have. Those that
 * no node has are absent.
 */
export async function runSettings(
  sql: Knex,
  clusterId: string,
  names: readonly EntryName[],
): Promise<Map<string, RunEntry>> {
  const { rows } = await sql.raw<{ rows: (EntryName & RunEntry & { there: boolean })[] }>(
    `select distinct on (e.kind, e.resource_id) e.kind, e.resource_id as id, e.blob_hash is not null as there, e.refs,
         (select s.settings::jsonb from config_settings s where s.hash = e.settings_hash) as settings
       from unnest(?::text[], ?::text[]) as n(kind, id)
       join config_entry e on e.cluster_id = ? and e.kind = n.kind and e.resource_id = n.id and e.to_revision is null
      order by e.kind, e.resource_id, e.track`,
    [names.map(({ kind }) => kind) as never, names.map(({ id }) => id) as never, clusterId],
  );
  return new Map(rows.flatMap(({ kind, id, there, ...entry }) => (there ? [[`${kind} ${id}`, entry]] : [])));
}
