// Publications to everybody that are watched, to be taken back where visitors suffer.
import type { Knex } from 'knex';
import type { RolloutPolicy } from '../../contract/resources/rollout.ts';
import type { EntryName } from '../config/write-revision.ts';
import { numbered } from '../db/named-statement.ts';

/** Changes looked at in one go, the latest first. */
const MAX_CHANGES = 200;

export interface WatchedPublication {
  clusterId: string;
  clusterName: string;
  /** Decimal string. */
  revision: string;
  since: Date;
  policy: Pick<RolloutPolicy, 'errorRatioMultiplier' | 'errorRatioFloor' | 'minRequests'>;
  /** Ids of its sites, '' where it concerns the whole cluster. */
  sites: string[];
}

/** Of clusters where changes are taken back; not while a canary runs, over which nothing is taken back. */
export async function watchedPublications(sql: Knex): Promise<WatchedPublication[]> {
  const { rows } = await sql.raw<{ rows: WatchedPublication[] }>(
    `select c.id as "clusterId", c.name as "clusterName", w.revision::text, min(w.since) as since,
         array_agg(w.site_id order by w.site_id) as sites,
         jsonb_build_object('errorRatioMultiplier', r.error_ratio_multiplier, 'errorRatioFloor', r.error_ratio_floor,
           'minRequests', r.min_requests) as policy
       from vital_watch w join cluster_rollout r on r.cluster_id = w.cluster_id and r.undo_direct
         and r.candidate_revision is null
       join cluster c on c.id = w.cluster_id
      where w.track = 'S' and w.until > now()
      group by c.id, w.revision, r.cluster_id order by w.revision desc limit ${MAX_CHANGES}`,
  );
  return rows;
}

/** Whether the publication is watched still: what was taken back, or given up, is not. */
export async function isWatched(sql: Knex, clusterId: string, revision: string): Promise<boolean> {
  const { rows } = await sql.raw<{ rows: unknown[] }>(
    'select from vital_watch where cluster_id = ? and revision = ?::bigint and until > now() limit 1',
    [clusterId, revision],
  );
  return rows.length > 0;
}

/** Names of the entries that the publication changed and none since. */
export async function entriesOf(sql: Knex, clusterId: string, revision: string): Promise<EntryName[]> {
  return numbered<EntryName>(
    sql,
    `select kind, resource_id as id from config_entry
       where cluster_id = $1 and track = 'S' and from_revision = $2 and to_revision is null
     union
     select kind, resource_id from config_entry e
       where cluster_id = $1 and track = 'S' and to_revision = $2 and not exists (select from config_entry n
         where n.cluster_id = e.cluster_id and n.track = 'S' and n.kind = e.kind and n.resource_id = e.resource_id
           and n.from_revision >= e.to_revision)`,
    [clusterId, revision],
  );
}

/** Sites whose changes were taken back since a moment. */
export async function undoneSites(sql: Knex, clusterId: string, since: Date): Promise<string[]> {
  const { rows } = await sql.raw<{ rows: { site: string }[] }>(
    `select distinct unnest(sites) as site from rollout_event where cluster_id = ? and at > ? and kind = 'undone'`,
    [clusterId, since],
  );
  return rows.map(({ site }) => site);
}
