// The settings that nodes run, of entries whose kind keeps them.
import type { Knex } from 'knex';

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
