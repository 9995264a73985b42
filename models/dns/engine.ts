// Where the engine is with each cluster. A fence tells an engine that another one works on the cluster now.
import type { Knex } from 'knex';
import type { DnsProblem } from '../../contract/resources/cluster-dns.ts';
import type { DnsMode } from '../../contract/resources/dns.ts';
import { ONLINE_SECONDS } from '../nodes/node-state.ts';

export interface DnsWork {
  clusterId: string;
  mode: DnsMode;
  /** The zone is to be looked at. */
  due: boolean;
  /** Numbers of revisions; null: none. */
  target: number | null;
  blocked: number | null;
  /** Of the settings. */
  updatedAt: Date;
}

/** Clusters with DNS settings, most urgent first. Whose records nobody writes and nobody has to remove is never due. */
export async function dnsWork(sql: Knex): Promise<DnsWork[]> {
  const { rows } = await sql.raw<{ rows: DnsWork[] }>(
    `select b.cluster_id as "clusterId", b.mode, b.target::int, b.blocked::int, b.updated_at as "updatedAt", b.due_at <= now() and (b.mode = 'auto' or (b.mode = 'off'
              and (b.applied is distinct from b.target or exists (select from dns_name n where n.cluster_id = b.cluster_id)))) as due
       from dns_binding b order by b.due_at`,
  );
  return rows;
}

/** Clusters whose sites changed are due; what was read is forgotten. */
export async function noteSiteChanges(sql: Knex): Promise<void> {
  await sql.raw(
    `with taken as (
       delete from dns_site_change where id in (
         select id from dns_site_change order by id limit 10000 for update skip locked) returning cluster_id)
     update dns_binding set due_at = least(due_at, now()) where cluster_id in (select cluster_id from taken)`,
  );
}

/** Whoever worked on the cluster before no longer may. */
export async function takeDnsFence(sql: Knex, clusterId: string): Promise<number> {
  const { rows } = await sql.raw<{ rows: { fence: number }[] }>(
    'update dns_binding set fence = fence + 1 where cluster_id = ? returning fence::int',
    [clusterId],
  );
  return rows[0]?.fence ?? -1;
}

export async function holdsDnsFence(sql: Knex, clusterId: string, fence: number): Promise<boolean> {
  const { rows } = await sql.raw<{ rows: unknown[] }>('select 1 from dns_binding where cluster_id = ? and fence = ?', [
    clusterId,
    fence,
  ]);
  return rows.length > 0;
}

export interface DnsOutcome {
  clusterId: string;
  fence: number;
  /** The revision that was worked on. */
  number: number;
  /** The runs that were asked for when this one began. */
  asked: number;
  problem: DnsProblem | null;
  conflicts: readonly string[];
  /** Seconds until the next look. */
  nextSeconds: number;
}

/** Keeps how a run ended, unless another engine took over. */
export async function endDnsRun(sql: Knex, outcome: DnsOutcome): Promise<void> {
  const { problem, conflicts, ...rest } = outcome;
  await sql.raw(
    `with ended as (
       update dns_binding set problem = :problem::jsonb, conflicts = :conflicts::text[], done = greatest(done, :asked),
              applied = case when :failed then applied else :number end,
              checked_at = case when :failed then checked_at else now() end,
              failing_since = case when :failed then coalesce(failing_since, now()) end,
              due_at = case when target is distinct from :number then now()
                       else now() + make_interval(secs => :nextSeconds) end
        where cluster_id = :clusterId and fence = :fence returning cluster_id)
     update dns_revision r
        set status = case when :failed then 'failed' else 'applied' end, problem = :problem::jsonb,
            applied_at = case when :failed then null else coalesce(r.applied_at, now()) end
       from ended e where r.cluster_id = e.cluster_id and r.number = :number and r.status in ('pending', 'failed')`,
    {
      ...rest,
      problem: problem === null ? null : JSON.stringify(problem),
      conflicts: conflicts.slice(0, 100),
      failed: problem !== null,
    } as never,
  );
}

export interface AskedRun {
  clusterId: string;
  asked: number;
}

/** Asks for a run on the clusters that have or had records, or on one of them. */
export async function askForDnsRuns(sql: Knex, clusterId: string | null): Promise<AskedRun[]> {
  const { rows } = await sql.raw<{ rows: AskedRun[] }>(
    `update dns_binding b set asked = asked + 1, due_at = now()
      where (:clusterId::text is null or cluster_id = :clusterId) and (mode = 'auto' or (mode = 'off' and exists (
        select from dns_name n where n.cluster_id = b.cluster_id)))
     returning cluster_id as "clusterId", asked::int`,
    { clusterId } as never,
  );
  return rows;
}

/** How many of the runs have not ended. */
export async function openDnsRuns(sql: Knex, runs: readonly AskedRun[]): Promise<number> {
  const { rows } = await sql.raw<{ rows: { open: number }[] }>(
    `select count(*)::int as open from dns_binding b
       join jsonb_to_recordset(?::jsonb) as r("clusterId" text, asked int) on r."clusterId" = b.cluster_id
      where b.done < r.asked`,
    [JSON.stringify(runs)],
  );
  return rows[0]!.open;
}

export interface DnsAttention {
  kind: 'dns_failed' | 'dns_blocked';
  clusterId: string;
  clusterName: string;
  revision: string | null;
  at: Date | null;
  count: number;
}

/** Clusters whose records could not be written, and those with a change that is held. */
export async function dnsAttention(sql: Knex, clusterId: string | null): Promise<DnsAttention[]> {
  const { rows } = await sql.raw<{ rows: DnsAttention[] }>(
    `select k.kind, c.id as "clusterId", c.name as "clusterName", k.revision::text, k.at, k.count
       from dns_binding b join cluster c on c.id = b.cluster_id
       left join dns_revision h on h.cluster_id = b.cluster_id and h.number = b.blocked,
       lateral (values
         ('dns_failed', b.target, b.failing_since, cardinality(b.conflicts), b.failing_since is not null),
         ('dns_blocked', b.blocked, h.created_at, h.removed, b.blocked is not null)) as k(kind, revision, at, count, found)
      where k.found and (:clusterId::text is null or c.id = :clusterId) order by k.at limit 1000`,
    { clusterId } as never,
  );
  return rows;
}

export interface UnaddressedNode {
  id: string;
  name: string;
  clusterId: string;
  clusterName: string;
  /** Addresses of its interfaces. */
  reported: string[];
}

/** Active connected nodes of managed clusters that nobody configured an address for. */
export async function nodesWithoutConfiguredAddress(sql: Knex, clusterId: string | null): Promise<UnaddressedNode[]> {
  const { rows } = await sql.raw<{ rows: UnaddressedNode[] }>(
    `select n.id, n.name, c.id as "clusterId", c.name as "clusterName",
            coalesce(array_agg(host(a.address)) filter (where a.source = 'reported'), '{}') as reported
       from dns_binding b join cluster c on c.id = b.cluster_id
       join node n on n.cluster_id = c.id and n.status = 'active'
       join node_state s on s.node_id = n.id and s.last_seen_at > now() - make_interval(secs => ${ONLINE_SECONDS})
       left join node_address a on a.node_id = n.id
      where b.mode <> 'off' and (:clusterId::text is null or c.id = :clusterId)
      group by n.id, c.id having count(*) filter (where a.source = 'configured') = 0 order by c.name, n.name`,
    { clusterId } as never,
  );
  return rows;
}
