// What people see of a canary beside its own row: its nodes, and how what it tries differs from what the others run.
import type { Knex } from 'knex';
import { NAMED_SITES } from '../../contract/resources/revisions.ts';
import { CANARY_NODES, LISTED_CHANGES, type Rollout } from '../../contract/resources/rollout.ts';
import { ONLINE_SECONDS } from '../nodes/node-state.ts';
import { siteLabels } from '../sites/site.ts';
import { CANARY_CAPABILITY } from './cluster-canary.ts';
import { SLOT_MS } from './vital.ts';

type Changes = NonNullable<Rollout['candidateChanges']>;
type SiteChange = keyof Changes['sites'];

/** For this long counts of nodes are kept. */
const KEPT_MS = 3_600_000;

/** Active nodes of canary groups and who takes part, or took part last, by name. */
export async function canaryNodes(sql: Knex, clusterId: string): Promise<Rollout['canaryNodes']> {
  const { rows } = await sql.raw<{ rows: Rollout['canaryNodes'] }>(
    `select n.id, n.name, n.status = 'active'
           and coalesce(s.last_seen_at > now() - make_interval(secs => ${ONLINE_SECONDS}), false) as online,
         coalesce(s.data_plane_healthy and s.failed = '[]', false) as healthy,
         coalesce(s.features @> array['${CANARY_CAPABILITY}'], false) as able,
         case when s.epoch = h.epoch then s.revision::text end as "appliedRevision",
         m.node_id is not null as participating
       from node n join node_group g on g.id = n.node_group_id
       left join rollout_member m on m.node_id = n.id and m.cluster_id = n.cluster_id
       left join node_state s on s.node_id = n.id
       left join cluster_head h on h.cluster_id = n.cluster_id
      where n.cluster_id = ? and (m.node_id is not null or g.is_canary and n.status = 'active')
      order by m.node_id is null, n.name, n.id limit ${CANARY_NODES}`,
    [clusterId],
  );
  return rows;
}

/** Sites of the candidate's entries: what becomes of each when the canary is promoted. */
const SITES = `
  with overlay as materialized (
    select kind, resource_id, blob_hash, coalesce(owner, (
        select s.owner from config_entry s where s.cluster_id = c.cluster_id and s.track = 'S' and s.bucket = c.bucket
          and s.kind = c.kind and s.resource_id = c.resource_id and s.to_revision is null)) as owner
      from config_entry c where cluster_id = :clusterId and track = 'C' and to_revision is null
  ), touched as (
    select substring(owner from 6) as id,
        bool_or(kind = 'site' and blob_hash is null) as gone, bool_or(kind = 'site' and blob_hash is not null) as there
      from overlay where owner like 'site:%' group by owner
  ), judged as (
    select id, case when t.gone then 'removed'
        when t.there and not exists (select from config_entry s where s.cluster_id = :clusterId and s.kind = 'site'
          and s.resource_id = t.id and s.track = 'S' and s.to_revision is null and s.blob_hash is not null) then 'added'
        else 'changed' end as change
      from touched t
  )
  select change, count(*)::int as count, (array_agg(id order by id))[1:${NAMED_SITES}] as ids from judged group by change`;

/** How the candidate of a canary that runs differs from what the other nodes run; `startedFrom`: what they ran at first. */
export async function candidateChanges(sql: Knex, clusterId: string, startedFrom: string): Promise<Changes> {
  const { rows: found } = await sql.raw<{ rows: { change: SiteChange; count: number; ids: string[] }[] }>(SITES, {
    clusterId,
  });
  const { rows: reasons } = await sql.raw<{ rows: { reason: string }[] }>(
    `select r.reason from config_revision r join cluster_head h using (cluster_id, epoch)
      where r.cluster_id = ? and r.number > ? group by r.reason order by min(r.number) limit ${LISTED_CHANGES}`,
    [clusterId, startedFrom],
  );
  const ids = found.flatMap((one) => one.ids);
  const labels = new Map((await siteLabels(sql, ids)).map((site) => [site.id, site]));
  const of = (change: SiteChange) => found.find((one) => one.change === change);
  const named = (change: SiteChange) => (of(change)?.ids ?? []).map((id) => labels.get(id)!);
  const count = (change: SiteChange) => of(change)?.count ?? 0;
  return {
    sites: { added: named('added'), changed: named('changed'), removed: named('removed') },
    siteCounts: { added: count('added'), changed: count('changed'), removed: count('removed') },
    reasons: reasons.map(({ reason }) => reason),
  };
}

/**
 * What nodes counted since the canary began until it ended, those with it and all others, of the last hour; null: nothing.
 * Each slot is looked up: rows of watched sites stand between.
 */
export async function windowFigures(
  sql: Knex,
  clusterId: string,
  { windowStartedAt, finishedAt }: { windowStartedAt: Date | null; finishedAt: Date | null },
): Promise<Rollout['window']> {
  if (windowStartedAt === null) return null;
  const first = Math.max(windowStartedAt.getTime(), Date.now() - KEPT_MS);
  const last = Math.min(finishedAt?.getTime() ?? Number.POSITIVE_INFINITY, Date.now());
  const sum = (column: string, track: 'S' | 'C') =>
    `coalesce(sum(${column}) filter (where v.track = '${track}'), 0)::float8`;
  const { rows } = await sql.raw<{ rows: (NonNullable<Rollout['window']> & { counted: number })[] }>(
    `select count(v.slot)::int as counted,
         ${sum('v.requests', 'C')} as "canaryRequests", ${sum('v.origin_5xx + v.edge_5xx', 'C')} as "canary5xx",
         ${sum('v.requests', 'S')} as "baselineRequests", ${sum('v.origin_5xx + v.edge_5xx', 'S')} as "baseline5xx"
       from generate_series(:first::bigint, :last::bigint, ${SLOT_MS}) as g(ms)
       join vital v on v.cluster_id = :clusterId and v.slot = to_timestamp(g.ms / 1000) and v.site_id = ''`,
    { clusterId, first: Math.ceil(first / SLOT_MS) * SLOT_MS, last } as never,
  );
  const { counted, ...figures } = rows[0]!;
  return counted === 0 ? null : figures;
}
