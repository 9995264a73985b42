// Further questions of the overview: sites above normal by cluster, bans in force, the newest changes.
import type { Knex } from 'knex';
import { MAX_NAMED } from '../../contract/resources/overview.ts';
import type { Actor } from '../../runtime/call.ts';
import { ONLINE_SECONDS } from '../nodes/node-state.ts';

export const MAX_CLUSTERS = 50;
/** A request that waits longer than this is stuck: actions and the job behind them take seconds. */
const WAITING = "interval '60 seconds'";

export interface AboveNormal {
  clusterId: string;
  clusterName: string;
  count: number;
  level: number;
  since: Date;
  named: { id: string; name: string; level: number }[];
}

/** Sites above normal on online nodes, of all clusters or one, by cluster. Costs follow these sites, not all. */
export async function sitesAboveNormal(sql: Knex, clusterId: string | null): Promise<AboveNormal[]> {
  const { rows } = await sql.raw<{ rows: AboveNormal[] }>(
    `with above as (
       select t.id, t.name, t.cluster_id, max(x.level) as level, min(x.since) as since
         from site_security x join node n on n.id = x.node_id and n.status = 'active'
         join node_state s on s.node_id = n.id and s.last_seen_at > now() - interval '${ONLINE_SECONDS} seconds'
         join site t on t.id = x.site_id
        where ?::text is null or t.cluster_id = ?
        group by t.id)
     select c.id as "clusterId", c.name as "clusterName", count(*)::int as count, max(a.level) as level,
         min(a.since) as since, jsonb_path_query_array(jsonb_agg(jsonb_build_object('id', a.id, 'name', a.name,
           'level', a.level) order by a.level desc, a.since, a.id), '$[0 to ${MAX_NAMED - 1}]') as named
       from above a join cluster c on c.id = a.cluster_id
      group by c.id order by level desc, count desc, c.name limit ${MAX_CLUSTERS}`,
    [clusterId, clusterId] as never,
  );
  return rows;
}

/**
 * Bans in force by who made them; of a cluster, those that its nodes enforce. Expired ones wait for the sweep, so the end is
 * asked for; those of deleted sites, mostly none, are taken off the count, because asking for each ban costs more.
 */
export async function bansInForce(
  sql: Knex,
  clusterId: string | null = null,
): Promise<{ manual: number; automatic: number }> {
  const count = (source: string, from: string) =>
    `(select count(*) from ${from} where b.source = '${source}' and b.lifted_at is null and b.expires_at > now()
        ${clusterId === null ? '' : 'and (b.cluster_id is null or b.cluster_id = :clusterId)'})`;
  const seen = (source: string) =>
    `(${count(source, 'ban b')} - ${count(source, 'gone_site g join ban b on b.site_id = g.site_id')})::int`;
  const { rows } = await sql.raw<{ rows: { manual: number; automatic: number }[] }>(
    `select ${seen('manual')} as manual, ${seen('auto')} as automatic`,
    { clusterId } as never,
  );
  return rows[0]!;
}

/** Publications asked for and not made, of all clusters or one, and since when the oldest. */
export async function waitingPublications(
  sql: Knex,
  clusterId: string | null,
): Promise<{ count: number; at: Date | null }> {
  const { rows } = await sql.raw<{ rows: { count: number; at: Date | null }[] }>(
    `select count(*)::int as count, min(created_at) as at from (
       select created_at from publish_request
        where created_at < now() - ${WAITING} and (?::text is null or cluster_id = ?) order by id limit 1000) r`,
    [clusterId, clusterId] as never,
  );
  return rows[0]!;
}

export interface NewestRevision {
  clusterId: string;
  clusterName: string;
  revision: string;
  reasonCode: string;
  reasonParams: Record<string, unknown>;
  actor: Actor;
  createdAt: Date;
}

/** The newest revisions of one cluster or of all: of those that published last, the last few. */
export async function newestRevisions(sql: Knex, clusterId: string | null, limit: number): Promise<NewestRevision[]> {
  const { rows } = await sql.raw<{ rows: NewestRevision[] }>(
    `select h.cluster_id as "clusterId", h.name as "clusterName", r.number::text as revision, r.reason as "reasonCode",
         r.params as "reasonParams", r.actor, r.created_at as "createdAt"
       from (select h.cluster_id, h.epoch, h.revision, c.name from cluster_head h join cluster c on c.id = h.cluster_id
              where published_at is not null and (:clusterId::text is null or c.id = :clusterId) order by published_at desc limit :limit) h
       join config_revision r on r.cluster_id = h.cluster_id and r.epoch = h.epoch and r.number > h.revision - :limit
      order by r.created_at desc, r.number desc limit :limit`,
    { clusterId, limit } as never,
  );
  return rows;
}

/** Epoch and number of the newest change of a ban, of those that a cluster gets where one is named; null without any. */
export async function newestBanChange(
  sql: Knex,
  clusterId: string | null,
): Promise<{ epoch: string; seq: string } | null> {
  const newest =
    clusterId === null
      ? 'select seq from ban_change order by seq desc limit 1'
      : `select greatest(
           (select seq from ban_change where cluster_id = '' order by seq desc limit 1),
           (select seq from ban_change where cluster_id = :clusterId order by seq desc limit 1)) as seq`;
  const { rows } = await sql.raw<{ rows: { epoch: string; seq: string }[] }>(
    `select t.epoch::text, c.seq::text from console_state t cross join (${newest}) c where c.seq is not null`,
    { clusterId } as never,
  );
  return rows[0] ?? null;
}

/** Changes of bans that are looked through for those of people: nodes make thousands while they are flooded. */
const LOOKED_THROUGH = 500;

/** Newest changes of bans that people made, lifted or changed, among the newest of all. */
export async function newestManualBanChanges(
  sql: Knex,
  limit: number,
): Promise<{ epoch: string; seq: string; changedAt: Date }[]> {
  const { rows } = await sql.raw<{ rows: { epoch: string; seq: string; changedAt: Date }[] }>(
    `select t.epoch::text, c.seq::text, c.changed_at as "changedAt"
       from console_state t cross join (select * from ban_change order by seq desc limit ${LOOKED_THROUGH}) c
       join ban b on b.id = c.ban_id and b.source = 'manual' order by c.seq desc limit ?`,
    [limit],
  );
  return rows;
}
