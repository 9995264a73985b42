// What just changed and is watched: sites of a cluster, each for a while after the revision that changed it.
import type { Knex } from 'knex';
import type { Pool } from 'pg';
import { prepared, type Statement } from '../db/named-statement.ts';
import { SWEEP_BATCH } from '../db/sweeps.ts';

/** Sites that nodes of a cluster are asked about at once, beside their whole traffic. */
export const MAX_WATCHED_SITES = 100;

export interface WatchedChange {
  clusterId: string;
  revision: string | number | bigint;
  /** Whose revision it is: that of all nodes, or that of a canary. */
  track: 'S' | 'C';
  /**
   * '' stands for a change of what concerns the whole cluster, and so does an empty list. `origins`: it touched origins or
   * routing of the site.
   */
  sites: readonly { id: string; origins: boolean }[];
  /** How long it is watched from now on. */
  seconds: number;
}

/**
 * Has nodes tell how what changed fares: the first 100 sites of the change. One of more sites than that concerns the whole
 * cluster. Told again it is watched for longer.
 */
export async function watchChange(sql: Knex, change: WatchedChange): Promise<void> {
  await prepared(sql, 'watch-change', watchStatement(change));
}

/** The statement of {@link watchChange}. */
export function watchStatement(change: WatchedChange): Statement {
  const { clusterId, revision, track, sites, seconds } = change;
  const named = new Map<string, boolean>();
  for (const { id, origins } of sites) named.set(id, origins || (named.get(id) ?? false));
  const ids = [...named.keys()].filter((id) => id !== '');
  const tooMany = ids.length > MAX_WATCHED_SITES;
  if (tooMany || ids.length === 0) named.set('', named.get('') || ids.some((id) => named.get(id)));
  for (const id of ids.slice(MAX_WATCHED_SITES)) named.delete(id);
  return {
    text: `insert into vital_watch (cluster_id, site_id, revision, track, origins, since, until)
       select ?, v.site_id, ?::bigint, ?, v.origins, now(), now() + make_interval(secs => ?)
         from unnest(?::text[], ?::boolean[]) as v(site_id, origins)
     on conflict (cluster_id, site_id, revision) do update
       set origins = vital_watch.origins or excluded.origins, until = greatest(vital_watch.until, excluded.until)`,
    bindings: [clusterId, String(revision), track, seconds, [...named.keys()], [...named.values()]],
  };
}

/** Stops watching what changed with a revision. */
export async function endWatch(sql: Knex, clusterId: string, revision: string | number | bigint): Promise<void> {
  await sql.raw(
    `update vital_watch set until = now() where cluster_id = ? and revision = ?::bigint and until > now()`,
    [clusterId, String(revision)],
  );
}

/** Stops watching what a canary tried, which ended. */
export async function endCanaryWatches(sql: Knex, clusterId: string): Promise<void> {
  await sql.raw(`update vital_watch set until = now() where cluster_id = ? and track = 'C' and until > now()`, [
    clusterId,
  ]);
}

/** What is watched of a cluster at this moment. */
export interface WatchNow {
  /** At most 100, those that changed last. */
  siteIds: string[];
  /** For how long still, from the moment it was read. */
  seconds: number;
  /** The latest revision of the cluster, on whichever track. */
  head: bigint;
}

/** What is watched at this moment, by cluster; where nothing is, there is nothing. */
export async function readWatches(pool: Pick<Pool, 'query'>): Promise<Map<string, WatchNow>> {
  const { rows } = await pool.query<{ clusterId: string; siteIds: string[]; seconds: number; head: string }>({
    name: 'vital-watches',
    text: `select w.cluster_id as "clusterId", h.head, ceil(extract(epoch from max(w.until) - now()))::int as seconds,
        coalesce((array_agg(w.site_id order by w.since desc, w.site_id) filter (where w.site_id <> ''))[1:${MAX_WATCHED_SITES}],
          '{}') as "siteIds"
      from (select cluster_id, site_id, max(since) as since, max(until) as until
          from vital_watch where until > now() group by cluster_id, site_id) w
        join (select cluster_id, greatest(revision, canary_revision) as head from cluster_head) h using (cluster_id)
      group by w.cluster_id, h.head`,
  });
  return new Map(rows.map(({ clusterId, head, ...watch }) => [clusterId, { ...watch, head: BigInt(head) }]));
}

/** Deletes a batch of what is not watched for an hour; answers how many rows. */
export async function purgeVitalWatches(sql: Knex): Promise<number> {
  const { rowCount } = await sql.raw<{ rowCount: number }>(
    `delete from vital_watch where ctid = any(array(
       select ctid from vital_watch where until < now() - interval '1 hour' limit ${SWEEP_BATCH}))`,
  );
  return rowCount;
}
