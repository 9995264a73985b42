// What came of canaries, and what was taken back: the history that people read.
import type { Knex } from 'knex';
import { type Finding, LISTED_CHANGES, type ROLLOUT_EVENT_KINDS, type Rollout } from '../contract/resources/rollout.ts';
import type { Actor } from '../runtime/call.ts';
import type { AboutRevision } from './revision-subject.ts';

export interface RolloutEventRow {
  id: string;
  clusterId: string;
  clusterName: string;
  at: Date;
  kind: (typeof ROLLOUT_EVENT_KINDS)[number];
  revision: string | null;
  outcome: Rollout['outcome'];
  finding: Partial<Finding> | null;
  actor: Actor;
}

export interface TriedRevision extends AboutRevision {
  number: string;
  actor: Actor;
  createdAt: Date;
}

const COLUMNS = `e.id, e.cluster_id as "clusterId", (select name from cluster where id = e.cluster_id) as "clusterName",
  e.at, e.kind, e.revision::text, e.outcome, e.finding, e.actor`;

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
 * everything else its own.
 */
export async function triedRevisions(sql: Knex, event: RolloutEventRow): Promise<TriedRevision[]> {
  const { rows } = await sql.raw<{ rows: TriedRevision[] }>(
    `with e as (select * from rollout_event where id = ?),
       begun as (
         select b.revision from e join rollout_event b on b.cluster_id = e.cluster_id and b.kind = 'started'
            and (b.at, b.id) < (e.at, e.id) and e.kind in ('promoted', 'rolled_back')
          order by b.at desc, b.id desc limit 1)
     select r.number::text, r.cluster_id as "clusterId", c.name as "clusterName", r.reason, r.params, r.actor,
         r.created_at as "createdAt"
       from e join cluster c on c.id = e.cluster_id left join begun on true
       join cluster_head h on h.cluster_id = e.cluster_id
       join config_revision r on r.cluster_id = e.cluster_id and r.epoch = h.epoch
        and r.number between coalesce(begun.revision, e.revision) and e.revision - (begun.revision is not null)::int
      order by r.number desc limit ${LISTED_CHANGES}`,
    [event.id],
  );
  return rows;
}
