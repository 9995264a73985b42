// What came of canaries, and what was taken back: the history that people read.
import type { Knex } from 'knex';
import {
  type Finding,
  LISTED_CHANGES,
  type ROLLOUT_EVENT_KINDS,
  type Rollout,
} from '../../contract/resources/rollout.ts';
import type { Actor } from '../../runtime/call.ts';
import type { AboutRevision } from '../config/revision-subject.ts';

export interface RolloutEventRow {
  id: string;
  clusterId: string;
  clusterName: string;
  at: Date;
  kind: (typeof ROLLOUT_EVENT_KINDS)[number];
  revision: string | null;
  outcome: Rollout['outcome'];
  finding: Partial<Finding> | null;
  /** Ids of the sites concerned. */
  sites: string[];
  actor: Actor;
}

export interface TriedRevision extends AboutRevision {
  number: string;
  actor: Actor;
  createdAt: Date;
}

const COLUMNS = `e.id, e.cluster_id as "clusterId", (select name from cluster where id = e.cluster_id) as "clusterName",
  e.at, e.kind, e.revision::text, e.outcome, e.finding, array_remove(e.sites, '') as sites,
  e.actor`;

/** Events of a cluster, newest first, and how many there are. */
export async function rolloutEventPage(
  sql: Knex,
  clusterId: string,
  limit: number,
  offset: number,
): Promise<{ rows: RolloutEventRow[]; total: number }> {
  const { rows } = await sql.raw<{ rows: RolloutEventRow[] }>(
    `select ${COLUMNS} from rollout_event e where cluster_id = ? order by at desc, id desc limit ? offset ?`,
    [clusterId, limit, offset],
  );
  const counted = await sql.raw<{ rows: { total: number }[] }>(
    'select count(*)::int as total from rollout_event where cluster_id = ?',
    [clusterId],
  );
  return { rows, total: counted.rows[0]!.total };
}

export async function rolloutEventById(sql: Knex, clusterId: string, id: string): Promise<RolloutEventRow | undefined> {
  const { rows } = await sql.raw<{ rows: RolloutEventRow[] }>(
    `select ${COLUMNS} from rollout_event e where cluster_id = ? and id = ?`,
    [clusterId, id],
  );
  return rows[0];
}

/**
 * Revisions that an event is about, newest first, those still kept: of a canary's end what was published since it began, of
 * what was undone the one that was, of everything else its own.
 */
export async function triedRevisions(sql: Knex, event: RolloutEventRow): Promise<TriedRevision[]> {
  const { rows } = await sql.raw<{ rows: TriedRevision[] }>(
    `with e as (select e.*, h.epoch from rollout_event e join cluster_head h using (cluster_id) where id = ?),
       span as (
         select coalesce(b.revision, u.undone, e.revision) as first, coalesce(e.revision - b.ends, u.undone, e.revision) as last
           from e
           left join lateral (
             select revision, 1 as ends from rollout_event b where b.cluster_id = e.cluster_id and b.kind = 'started'
               and (b.at, b.id) < (e.at, e.id) and e.kind in ('promoted', 'rolled_back')
              order by b.at desc, b.id desc limit 1) b on true
           left join lateral (
             select (r.params ->> 'revision')::bigint as undone from config_revision r
              where r.cluster_id = e.cluster_id and r.epoch = e.epoch and r.number = e.revision and e.kind = 'undone') u on true)
     select r.number::text, r.cluster_id as "clusterId", c.name as "clusterName", r.reason, r.params, r.actor,
         r.created_at as "createdAt"
       from e join cluster c on c.id = e.cluster_id cross join span
       join config_revision r on r.cluster_id = e.cluster_id and r.epoch = e.epoch
        and r.number between span.first and span.last
      order by r.number desc limit ${LISTED_CHANGES}`,
    [event.id],
  );
  return rows;
}
