// All nodes, or those of a cluster, by the one word that says what they are, in one pass over them.
import type { Knex } from 'knex';
import { MAX_NAMED, type NodeWord } from '../../contract/resources/overview.ts';
import { subjectIds } from '../alerts/alert.ts';
import { ONLINE_SECONDS } from '../nodes/node-state.ts';

/** A change is on its way for this long before a node that has not got it is behind. */
const ON_ITS_WAY = "interval '10 seconds'";
/** Nodes renew ten days before the end: with less than this left they fail to. */
const ENDING = "interval '9 days'";

const UNHEALTHY: readonly NodeWord[] = [
  'refused',
  'certificate_expired',
  'offline',
  'apply_failed',
  'data_plane_unhealthy',
];
const LAGGING: readonly NodeWord[] = ['upgrade_required', 'config_behind', 'bans_behind'];

export type NodeGroupKind =
  | 'nodes_unhealthy'
  | 'nodes_lagging'
  | 'nodes_bans_unapplied'
  | 'node_certificates_ending'
  | 'nodes_proxy_peers_unset';

export interface NodeGroup {
  kind: NodeGroupKind;
  clusterId: string;
  clusterName: string;
  /** Revision that the cluster's nodes should run. */
  revision: string;
  at: Date | null;
  count: number;
  named: { id: string; name: string; reason: NodeWord }[];
  /** Ids of all of them, as `subjectIds` reads them. */
  subjects: string[];
}

/** What the online active nodes of a cluster run; null without any. */
export interface ClusterSpan {
  clusterId: string;
  clusterName: string;
  /** Active nodes, connected or not. */
  nodes: number;
  /** Of these, those that were connected before and are not now. */
  silent: number;
  /** -1: a node without a configuration of this history. */
  least: number | null;
  most: number | null;
  allHealthy: boolean;
  /** Entries that failed on one of them. */
  failed: { kind: string; id: string }[];
  /** Capabilities that live entries need and one of them does not report. */
  lacks: string[];
  /** The different things they run. */
  groups: RunningGroup[];
}

/** Online active nodes of a cluster that run the same. */
export interface RunningGroup {
  /** -1: without a configuration of this history. */
  revision: number;
  /** Capabilities that live entries need and they do not report. */
  lacks: string[];
  /** Ids of the sites that they could not apply in any version. */
  down: string[];
}

export interface FleetView {
  online: number;
  /** Whether any node of any cluster is connected. */
  anyOnline: boolean;
  states: Partial<Record<NodeWord, number>>;
  groups: NodeGroup[];
  spans: ClusterSpan[];
}

const FLEET = `
  with fleet as materialized (
    select n.id, n.name, n.cluster_id, n.status, n.enrolled_at, h.revision as target, h.track, d.published_at,
        coalesce(s.last_seen_at > now() - interval '${ONLINE_SECONDS} seconds', false) as online,
        coalesce((s.epoch, s.track, s.revision) = (h.epoch, h.track, h.revision), false) as on_target,
        case when s.epoch = h.epoch then s.revision else -1 end as revision,
        case when s.ban_epoch = t.epoch then s.ban_sequence else -1 end as sequence,
        greatest(b.seq, p.seq, 0) as ban_target,
        s.last_seen_at, s.auth_error, s.failed, s.message, s.data_plane_healthy, s.features, s.missing_features, s.applied_at, k.ends,
        c.client_ip ->> 'mode' = 'proxy_protocol' and s.info -> 'proxyPeersUnset' = 'true' as believes_any_peer
      from node n
      join cluster c on c.id = n.cluster_id
      cross join console_state t
      left join node_state s on s.node_id = n.id
      left join cluster_head d on d.cluster_id = n.cluster_id
      left join node_target h on h.node_id = n.id
      left join ban_head b on b.cluster_id = n.cluster_id
      left join ban_head p on p.cluster_id = ''
      left join (select node_id, max(not_after) as ends from node_certificate where state = 'active' group by node_id) k
        on k.node_id = n.id
     where :cluster::text is null or n.cluster_id = :cluster
  ), worded as materialized (
    select f.*, case
        when status <> 'active' then 'disabled'
        when auth_error is not null then 'refused'
        when ends <= now() then 'certificate_expired'
        when last_seen_at is null then 'awaiting'
        when not online then 'offline'
        when failed <> '[]' or (message <> '' and not on_target) then 'apply_failed'
        when not data_plane_healthy then 'data_plane_unhealthy'
        when missing_features <> '{}' then 'upgrade_required'
        when target is not null and not on_target and greatest(enrolled_at, (
            select r.created_at from config_revision r join cluster_head h using (cluster_id, epoch)
             where r.cluster_id = f.cluster_id and r.number > f.revision and (r.stable or f.track = 'C')
             order by r.number limit 1)) < now() - ${ON_ITS_WAY} then 'config_behind'
        when sequence < ban_target and enrolled_at < now() - ${ON_ITS_WAY} and exists (
            (select from ban_change c where c.cluster_id = f.cluster_id and c.seq > f.sequence
              and c.changed_at < now() - ${ON_ITS_WAY} limit 1)
            union all
            (select from ban_change c where c.cluster_id = '' and c.seq > f.sequence
              and c.changed_at < now() - ${ON_ITS_WAY} limit 1)) then 'bans_behind'
        else 'ok' end as word
      from fleet f
  ), lacking as materialized (
    select w.id, w.cluster_id, jsonb_agg(f.feature order by f.feature) as features from worded w
      join config_feature f on f.cluster_id = w.cluster_id and f.track = 'S'
     where w.online and w.status = 'active' and f.feature <> all(coalesce(w.features, '{}'))
     group by w.id, w.cluster_id
  ), running as materialized (
    select distinct w.cluster_id, w.revision, coalesce(l.features, '[]') as lacks,
        case when w.failed = '[]' then '[]' else (
          select coalesce(jsonb_agg(f.id order by f.id), '[]') from jsonb_to_recordset(w.failed) as f(kind text, id text, running boolean)
           where f.kind = 'site' and f.running is not true) end as down
      from worded w left join lacking l on l.id = w.id where w.online and w.status = 'active'
  ), asking as (
    select cluster_id, id, name, word, target, 'nodes_unhealthy' as kind,
        case word when 'offline' then last_seen_at when 'certificate_expired' then ends when 'apply_failed' then applied_at end as at
      from worded where word = any(:unhealthy::text[])
    union all
    select cluster_id, id, name, word, target, 'nodes_lagging', case when word = 'config_behind' then published_at end
      from worded where word = any(:lagging::text[])
    union all
    select cluster_id, id, name, word, target, 'nodes_bans_unapplied', null
      from worded w where online and status = 'active' and exists (select from ban_unapplied u where u.node_id = w.id)
    union all
    select cluster_id, id, name, word, target, 'node_certificates_ending', ends
      from worded where status = 'active' and word not in ('refused', 'certificate_expired') and ends < now() + ${ENDING}
    union all
    select cluster_id, id, name, word, target, 'nodes_proxy_peers_unset', null
      from worded where status = 'active' and believes_any_peer
  ), grouped as (
    select kind, cluster_id, max(target) as target, min(at) as at, count(*)::int as count,
        (jsonb_agg(jsonb_build_object('id', id, 'name', name, 'reason', word)
          order by array_position(:words::text[], word), name, id)) as named,
        ${subjectIds('id')} as subjects
      from asking group by kind, cluster_id
  )
  select (select count(*)::int from worded where online and status = 'active') as online,
    exists (select from node_state s join node n on n.id = s.node_id and n.status = 'active'
      where s.last_seen_at > now() - interval '${ONLINE_SECONDS} seconds') as "anyOnline",
    (select coalesce(jsonb_object_agg(word, count), '{}') from (
       select word, count(*) from worded group by word) w) as states,
    (select coalesce(jsonb_agg(g order by count desc, "clusterName"), '[]') from (
       select kind, g.cluster_id as "clusterId", c.name as "clusterName", coalesce(target, 0)::text as revision, at, count,
           jsonb_path_query_array(named, '$[0 to ${MAX_NAMED - 1}]') as named, subjects
         from grouped g join cluster c on c.id = g.cluster_id) g) as groups,
    (select coalesce(jsonb_agg(s), '[]') from (
       select c.id as "clusterId", c.name as "clusterName", count(w.id)::int as nodes,
           (count(*) filter (where not w.online and w.last_seen_at is not null))::int as silent,
           min(w.revision) filter (where w.online) as least, max(w.revision) filter (where w.online) as most,
           coalesce(bool_and(w.data_plane_healthy) filter (where w.online), false) as "allHealthy",
           (select coalesce(jsonb_agg(distinct jsonb_build_object('kind', f.kind, 'id', f.id)), '[]') from worded v
              cross join lateral jsonb_to_recordset(v.failed) as f(kind text, id text)
              where v.cluster_id = c.id and v.online and v.status = 'active' and v.failed <> '[]') as failed,
           (select coalesce(jsonb_agg(distinct f.feature), '[]') from lacking l
              cross join jsonb_array_elements_text(l.features) as f(feature) where l.cluster_id = c.id) as lacks,
           (select coalesce(jsonb_agg(jsonb_build_object('revision', r.revision, 'lacks', r.lacks, 'down', r.down)), '[]')
              from running r where r.cluster_id = c.id) as groups
         from cluster c left join worded w on w.cluster_id = c.id and w.status = 'active'
        where :cluster::text is null or c.id = :cluster group by c.id) s) as spans`;

/**
 * What the nodes of a cluster are; of all with null. One scan of the nodes; their further rows are looked up only where one
 * is not in order.
 */
export async function fleetView(
  sql: Knex,
  words: readonly NodeWord[],
  clusterId: string | null = null,
): Promise<FleetView> {
  const { rows } = await sql.raw<{ rows: FleetView[] }>(FLEET, {
    unhealthy: UNHEALTHY,
    lagging: LAGGING,
    words,
    cluster: clusterId,
  } as never);
  const { groups, ...view } = rows[0]!;
  return { ...view, groups: groups.map((group) => ({ ...group, at: group.at && new Date(group.at) })) };
}
