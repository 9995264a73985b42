// How far a published revision or a ban has come among the nodes it concerns.
import type { Knex } from 'knex';
import type { Actor } from '../../runtime/call.ts';
import type { EntryName } from '../config/write-revision.ts';
import { ONLINE_SECONDS } from '../nodes/node-state.ts';

export type WaitReason =
  | 'offline'
  | 'never_connected'
  | 'behind'
  | 'capability_missing'
  | 'data_plane_unhealthy'
  | 'entry_failed'
  | 'ban_unapplied';

export type ChangeAbout =
  | { clusterName: string; params: Record<string, unknown>; changed: EntryName[] }
  | { banId: string; cidr: string | null; inForce: boolean };

export interface Progress {
  clusterId: string | null;
  publishedAt: Date;
  reason: string;
  /** Null: not known any more. */
  actor: Actor | null;
  /** What the change is about: the parameters of a revision, or a ban. */
  about: ChangeAbout;
  nodes: { total: number; applied: number; failed: number; offline: number };
  waiting: { id: string; name: string; online: boolean; reason: WaitReason }[];
  firstAppliedAt: Date | null;
  lastAppliedAt: Date | null;
  done: boolean;
}

interface ProgressRow {
  clusterId: string | null;
  /** Null: there is no such change, and nothing else of the row counts. */
  publishedAt: Date | null;
  reason: string;
  actor: Actor | null;
  about: ChangeAbout;
  total: number;
  applied: number;
  failed: number;
  offline: number;
  waiting: Progress['waiting'];
  firstAppliedAt: Date | null;
  lastAppliedAt: Date | null;
}

const MAX_WAITING = 20;
const ONLINE = `coalesce(s.last_seen_at > now() - interval '${ONLINE_SECONDS} seconds', false)`;

// `state` has a row for each node concerned: id, name, online, reached, failed, reason, applied_at.
const SUMMARY = `
  (select count(*)::int from state) as total,
  (select count(*)::int from state where reached and not failed) as applied,
  (select count(*)::int from state where reached and failed) as failed,
  (select count(*)::int from state where not reached and not online) as offline,
  (select min(applied_at) from state where reached and not failed) as "firstAppliedAt",
  (select max(applied_at) from state where reached and not failed) as "lastAppliedAt",
  (select coalesce(json_agg(json_build_object('id', w.id, 'name', w.name, 'online', w.online, 'reason', w.reason)), '[]')
    from (select id, name, online, reason from state where failed or not reached
      order by online desc, name, id limit ${MAX_WAITING}) w) as waiting`;

const WHY = (failed: string, failure: string) => `
  case when s.last_seen_at is null then 'never_connected' when not ${ONLINE} then 'offline'
    when ${failed} then '${failure}' when s.missing_features <> '{}' then 'capability_missing'
    when not s.data_plane_healthy then 'data_plane_unhealthy' else 'behind' end`;

const ENTRY_FAILED = `exists (select from jsonb_to_recordset(s.failed) as f(kind text, id text)
    join jsonb_to_recordset(r.changed) as c(kind text, id text) on c.kind = f.kind and c.id = f.id)`;

/**
 * The nodes of a revision; `asked` has its cluster_id and number. A node that lacks what the changed entries need holds them: it is at
 * the revision and has not applied it; that a site is switched off it takes over even from what it holds. What only a
 * canary tries concerns nobody else.
 */
const NODES_OF_REVISION = `with r as (
      select r.*, h.epoch as head_epoch, not r.stable and h.canary_revision is not null as tried from config_revision r join cluster_head h on h.cluster_id = r.cluster_id
      where r.cluster_id = asked.cluster_id and r.number = asked.number order by r.epoch desc limit 1
    ), needed as (
      select coalesce(array_agg(distinct f), '{}') as features from r
      cross join lateral jsonb_to_recordset(r.changed) as c(kind text, id text)
      join config_entry e on e.cluster_id = r.cluster_id and e.resource_id = c.id and e.kind = c.kind
        and e.to_revision is null
      cross join lateral unnest(e.features) as f
      where r.reason <> 'site_disabled'
    ), state as (
      select n.id, n.name, ${ONLINE} as online, s.applied_at,
        coalesce(s.epoch = r.head_epoch and s.revision >= r.number and d.features <@ s.features, false) as reached,
        coalesce(s.epoch = r.head_epoch and s.revision >= r.number and d.features <@ s.features and ${ENTRY_FAILED}, false) as failed,
        ${WHY(ENTRY_FAILED, 'entry_failed')} as reason
      from r cross join needed d join node n on n.cluster_id = r.cluster_id and n.status = 'active'
        and (not r.tried or exists (select from rollout_member m where m.cluster_id = r.cluster_id and m.node_id = n.id))
      left join node_state s on s.node_id = n.id
    )`;

const BAN_UNAPPLIED = 'exists (select from ban_unapplied u where u.node_id = n.id and u.ban_id = c.ban_id)';

/** The nodes of a ban's change; `asked` has its seq and epoch, and as `within` the one cluster whose nodes count, or null. */
const NODES_OF_BAN = `with c as (
      select c.*, b.lifted_at is not null or b.id is null as lifted, b.created_by, b.cidr, b.expires_at, t.epoch
      from ban_change c cross join console_state t left join ban b on b.id = c.ban_id
      where c.seq = asked.seq and t.epoch = asked.epoch
    ), state as (
      select n.id, n.name, ${ONLINE} as online, s.bans_applied_at as applied_at,
        coalesce(s.ban_epoch = c.epoch and s.ban_sequence >= c.seq, false) as reached,
        coalesce(s.ban_epoch = c.epoch and s.ban_sequence >= c.seq and ${BAN_UNAPPLIED}, false) as failed,
        ${WHY(BAN_UNAPPLIED, 'ban_unapplied')} as reason
      from c join node n on c.cluster_id in ('', n.cluster_id) and n.status = 'active'
        and (asked.within is null or n.cluster_id = asked.within)
      left join node_state s on s.node_id = n.id
    )`;

export interface RevisionName {
  clusterId: string;
  revision: string;
}

export interface BanChangeName {
  epoch: string;
  seq: string;
}

/** In the order of the names; null where the cluster has or remembers no such revision. */
export async function readRevisionsProgress(sql: Knex, names: readonly RevisionName[]): Promise<(Progress | null)[]> {
  return progress(
    sql,
    'unnest(?::text[], ?::bigint[]) with ordinality as asked(cluster_id, number, place)',
    [names.map(({ clusterId }) => clusterId), names.map(({ revision }) => revision)],
    `${NODES_OF_REVISION}
    select r.cluster_id as "clusterId", r.created_at as "publishedAt", r.reason, r.actor,
      jsonb_build_object('clusterName', (select name from cluster where id = r.cluster_id), 'params', r.params,
        'changed', r.changed) as about,
      ${SUMMARY} from r`,
  );
}

/**
 * In the order of the names; null where the feed's history is another, or the number is not remembered any more. `within`: of
 * the nodes a change concerns, only those of this cluster.
 */
export async function readBansProgress(
  sql: Knex,
  names: readonly BanChangeName[],
  within: string | null = null,
): Promise<(Progress | null)[]> {
  return progress(
    sql,
    `(select o.seq, o.epoch, o.place, ?::text as within
        from unnest(?::bigint[], ?::bigint[]) with ordinality as o(seq, epoch, place)) asked`,
    [within, names.map(({ seq }) => seq), names.map(({ epoch }) => epoch)],
    `${NODES_OF_BAN}
    select nullif(c.cluster_id, '') as "clusterId", c.changed_at as "publishedAt",
      case when c.lifted then 'ban_lifted' else 'ban_created' end as reason,
      -- Who lifted it is in the audit log alone.
      case when not c.lifted then c.created_by end as actor,
      jsonb_build_object('banId', c.ban_id, 'cidr', c.cidr::text,
        'inForce', not c.lifted and c.expires_at > now()) as about, ${SUMMARY} from c`,
  );
}

/** Of what `asked` names, each by its place; one query for all. */
async function progress(
  sql: Knex,
  asked: string,
  bindings: readonly (string | null | string[])[],
  statement: string,
): Promise<(Progress | null)[]> {
  const { rows } = await sql.raw<{ rows: ProgressRow[] }>(
    `select p.* from ${asked} left join lateral (${statement}) p on true order by asked.place`,
    bindings as never,
  );
  return rows.map(({ total, applied, failed, offline, ...rest }) =>
    // Nothing is known of what was not found, not even when it was.
    rest.publishedAt === null
      ? null
      : {
          ...rest,
          publishedAt: rest.publishedAt,
          nodes: { total, applied, failed, offline },
          done: applied + offline === total,
        },
  );
}

export interface Arrival {
  id: string;
  name: string;
  online: boolean;
  state: 'applied' | 'failed' | 'waiting';
  reason: WaitReason | null;
  /** As PostgreSQL writes it in JSON. */
  appliedAt: string | null;
}

/** Nodes that a change concerns, those that have not applied it first; nothing where there is or was no such change. */
export async function readArrivals(
  sql: Knex,
  change: RevisionName | BanChangeName,
  { limit, offset }: { limit: number; offset: number },
): Promise<{ items: Arrival[]; total: number }> {
  const [asked, nodes, bindings] =
    'seq' in change
      ? ['?::bigint as seq, ?::bigint as epoch, null::text as within', NODES_OF_BAN, [change.seq, change.epoch]]
      : ['?::text as cluster_id, ?::bigint as number', NODES_OF_REVISION, [change.clusterId, change.revision]];
  const { rows } = await sql.raw<{ rows: { items: Arrival[]; total: number }[] }>(
    `select p.* from (select ${asked}) asked cross join lateral (${nodes}
    select (select count(*)::int from state) as total, coalesce((select json_agg(w) from (
      select id, name, online,
        case when failed then 'failed' when reached then 'applied' else 'waiting' end as state,
        case when failed or not reached then reason end as reason,
        case when reached and not failed then applied_at end as "appliedAt"
      from state order by reached and not failed, online desc, name, id limit ? offset ?) w), '[]') as items) p`,
    [...bindings, limit, offset] as never,
  );
  return rows[0]!;
}
