// How long changes took to reach the connected nodes. Of a burst, the first change of each 20 ms is kept: it waited
// longest, and which one that is does not depend on how a process received them.
import type { Knex } from 'knex';
import type { Pool } from 'pg';

/** Changes that figures are about: the newest of a feed, not older than a day. */
export const RECENT_CHANGES = 500;
const KEPT_HOURS = 24;
/** Rows of a feed beyond which older ones go. */
const KEPT_ROWS = 5000;
const SLOTS_PER_SECOND = 50;

/** Changes (from, to] as the nodes of one process got them. */
export interface SettledBatch {
  clusterId: string;
  feed: string;
  epoch: bigint;
  from: bigint;
  to: bigint;
  /** Connected nodes it was pushed to, and those that have it; less what was written of it before. */
  nodes: number;
  reached: number;
  /** Milliseconds, when the last of them had it. */
  lastAt: number | null;
  lastNode: string | null;
}

const SLOT = (time: string) => `floor(extract(epoch from ${time}) * ${SLOTS_PER_SECOND})`;

/** A feed whose changes are measured; `changes` is SQL as in runtime/feeds.ts. */
export interface MeasuredFeed {
  name: string;
  changes: string | null;
}

const write = ({ name, changes }: MeasuredFeed) => `
  with batch as (
    select * from jsonb_to_recordset($1::jsonb) as b("clusterId" text, epoch bigint, "from" bigint, "to" bigint,
      nodes integer, reached integer, "lastAt" timestamptz, "lastNode" text)
  ), measured as (
    select c.cluster_id, b.epoch, c.number, c.at, sum(b.nodes)::int as nodes, sum(b.reached)::int as reached,
        greatest(0, extract(epoch from max(b."lastAt") - c.at) * 1000)::float8 as ms,
        (array_agg(b."lastNode" order by b."lastAt" desc nulls last))[1] as node
      from batch b cross join lateral (${changes}) c
     where c.number > b."from" and c.cluster_id in ('', b."clusterId")
       and ${SLOT('c.at')} is distinct from ${SLOT('c.before')}
     group by 1, 2, 3, 4
  )
  insert into propagation as p (feed, cluster_id, epoch, number, published_at, nodes, reached, slowest_ms, slowest_node_id)
  select '${name}', cluster_id, epoch, number, at, nodes, reached, case when node is not null then ms end, node
    from measured order by cluster_id, epoch, number
  on conflict (feed, cluster_id, epoch, number) do update set
    nodes = p.nodes + excluded.nodes, reached = p.reached + excluded.reached,
    slowest_node_id = case when excluded.slowest_ms > coalesce(p.slowest_ms, -1) then excluded.slowest_node_id
      else p.slowest_node_id end,
    slowest_ms = greatest(p.slowest_ms, excluded.slowest_ms)`;

/** Adds what the nodes of this process did to what those of others did. */
export async function writePropagation(
  pool: Pick<Pool, 'query'>,
  feeds: Iterable<MeasuredFeed>,
  batches: readonly SettledBatch[],
): Promise<void> {
  for (const feed of feeds) {
    if (feed.changes === null) continue;
    const rows = batches
      .filter((batch) => batch.feed === feed.name)
      .map(({ epoch, from, to, lastAt, ...rest }) => ({
        ...rest,
        epoch: String(epoch),
        from: String(from),
        to: String(to),
        lastAt: lastAt === null ? null : new Date(lastAt),
      }));
    if (rows.length === 0) continue;
    await pool.query({ name: `write-propagation-${feed.name}`, text: write(feed), values: [JSON.stringify(rows)] });
  }
}

// Feeds that have rows, each found by one step along the index.
const PRESENT = `present as (
    select min(feed) as feed from propagation
    union all
    select (select min(feed) from propagation p where p.feed > f.feed) from present f where f.feed is not null)`;

export interface PropagationFigures {
  feed: string;
  changes: number;
  /** Of those, reached every connected node. */
  complete: number;
  /** Milliseconds within which that share of the changes reached every node; null when fewer did. */
  p50: number | null;
  p95: number | null;
  p99: number | null;
  /** The node that was last most often. */
  slowest: { id: string; name: string | null; lastIn: number; worstMs: number } | null;
}

/**
 * Figures of each feed that has any; of a cluster: of the changes that it gets. One that all clusters get is measured until
 * all of them have it.
 */
export async function propagationFigures(sql: Knex, clusterId: string | null = null): Promise<PropagationFigures[]> {
  const { rows } = await sql.raw<{ rows: PropagationFigures[] }>(
    `with recursive ${PRESENT}, recent as materialized (
       select r.* from present f cross join lateral (
         select feed, reached >= nodes as complete, slowest_ms, slowest_node_id from propagation p
          where p.feed = f.feed and nodes > 0 and published_at > now() - interval '${KEPT_HOURS} hours'
            and (:clusterId::text is null or cluster_id in ('', :clusterId))
          order by published_at desc limit ${RECENT_CHANGES}) r
     ), share as (
       select feed, count(*)::int as changes, (count(*) filter (where complete))::int as complete,
           percentile_disc(array[0.5, 0.95, 0.99]) within group (
             order by case when complete then slowest_ms else 'infinity' end) as within
         from recent group by feed
     ), last_node as (
       select distinct on (feed) feed, slowest_node_id as id, count(*)::int as times, max(slowest_ms) as worst
         from recent where slowest_node_id is not null
           and (:clusterId::text is null or slowest_node_id in (select id from node where cluster_id = :clusterId))
        group by 1, 2 order by feed, times desc, worst desc, id
     )
     select s.feed, s.changes, s.complete, nullif(s.within[1], 'infinity') as p50, nullif(s.within[2], 'infinity') as p95,
         nullif(s.within[3], 'infinity') as p99,
         case when l.id is not null then jsonb_build_object('id', l.id, 'name', n.name, 'lastIn', l.times,
           'worstMs', l.worst) end as slowest
       from share s left join last_node l using (feed) left join node n on n.id = l.id`,
    { clusterId } as never,
  );
  return rows;
}

/** Deletes rows beyond the newest of a feed or a day, a bounded number at a time; answers how many. */
export async function sweepPropagation(sql: Knex, limit: number): Promise<number> {
  const { rowCount } = await sql.raw<{ rowCount: number }>(
    `with recursive ${PRESENT}
     delete from propagation where ctid = any(array(
       select p.ctid from present f cross join lateral (
         select greatest(now() - interval '${KEPT_HOURS} hours', coalesce((
           select published_at from propagation q where q.feed = f.feed
            order by published_at desc offset ${KEPT_ROWS} limit 1), '-infinity')) as at) floor
       join propagation p on p.feed = f.feed and p.published_at <= floor.at
       limit ?))`,
    [limit],
  );
  return rowCount;
}

export interface ChangeSpread {
  spreadMs: number | null;
  slowest: { id: string; name: string } | null;
}

/**
 * How long one change took to be on every connected node; nulls when it is not, or nobody was connected. `within`: names the
 * slowest node only when it is of this cluster.
 */
export async function changeSpread(
  sql: Knex,
  change: { feed: string; clusterId: string; number: string },
  within: string | null,
): Promise<ChangeSpread> {
  const { rows } = await sql.raw<{ rows: ChangeSpread[] }>(
    `select case when p.reached >= p.nodes then p.slowest_ms end as "spreadMs",
         case when n.id is not null then jsonb_build_object('id', n.id, 'name', n.name) end as slowest
       from propagation p left join node n on n.id = p.slowest_node_id
         and (:within::text is null or n.cluster_id = :within)
      where p.feed = :feed and p.cluster_id = :clusterId and p.number = :number order by p.epoch desc limit 1`,
    { ...change, within } as never,
  );
  return rows[0] ?? { spreadMs: null, slowest: null };
}
