// How what changed fares: nodes with the change beside nodes without, in the same time, and before it.
import type { Knex } from 'knex';

/** How far back "before a change" reaches. */
const BEFORE_MINUTES = 10;
/** Where minutes tell of fewer, what was watched may tell more. */
const FEW_REQUESTS = 100;
/** Rows that a picture of the whole cluster is drawn from. */
const MAX_ROWS = 20_000;

/** Sums of requests and how they ended. What protection kept away is not among them. */
export interface Figures {
  /** Most nodes that reported in the same 5 seconds; 0 where that is not known. */
  nodes: number;
  requests: number;
  /** Answers 5xx of origins. */
  origin5xx: number;
  /** Answers 5xx that edges made, by the code of X-Svc-Error. */
  edgeCodes: Readonly<Record<string, number>>;
}

/** What nodes say of themselves, beside their traffic. */
export interface NodeFigures {
  /** Data planes that were started again. */
  restarts: number;
  /** Entries that newly fail, of all nodes together. */
  failed: number;
}

/** A site that changed, or '' for the traffic of the nodes as a whole. */
export interface SiteVitals {
  siteId: string;
  /** Whether the change touched origins or routing of it. */
  origins: boolean;
  /** Of nodes that run the change, and of those that do not, in the same time. */
  changed: Figures & NodeFigures;
  lacking: Figures & NodeFigures;
}

export interface VitalsOf {
  clusterId: string;
  /** The revision of the change; of a canary the first one of its window. */
  revision: string | number | bigint;
  /**
   * A canary: nodes on track C run it, those on S do not. Else a revision of all nodes: who is that far runs it, and is told
   * of until another change of the same comes.
   */
  canary: boolean;
  /** From when on: when the change began, or later. */
  since: Date;
}

type Sums = Figures & NodeFigures;

/** The whole first, also where the change was of sites alone: `concernsAll` says which. Then sites by id. */
export async function readVitals(
  sql: Knex,
  { clusterId, revision, canary, since }: VitalsOf,
): Promise<{ concernsAll: boolean; sites: SiteVitals[] }> {
  const number = String(revision);
  const side = canary
    ? `case when v.track = 'S' then 'lacking' when v.revision >= :number::bigint then 'changed' end`
    : `case when v.revision < :number::bigint then 'lacking' when s.next is null or v.revision < s.next then 'changed' end`;
  const watched = `select site_id, bool_or(origins) as origins from vital_watch
    where cluster_id = :clusterId and ${canary ? `track = 'C' and revision >=` : 'revision ='} :number::bigint group by 1`;
  // Another change of the same, or of everything, is judged by itself. Data planes that die after any other change died of
  // that one, where only sites changed here.
  const next = `select min(n.revision) from vital_watch n where n.cluster_id = :clusterId and n.revision > :number::bigint
    and (n.site_id in (a.site_id, '') or not a.watched)`;
  // Nodes and failures are of a moment: the moment with most of them. Everything else adds up.
  const { rows } = await sql.raw<{ rows: (Sums & { siteId: string; side: 'changed' | 'lacking' | null })[] }>(
    `with watched as (${watched}), asked as materialized (
       select a.site_id, ${canary ? 'null::bigint' : `(${next})`} as next
         from (select site_id, true as watched from watched
           union all select '', false where not exists (select from watched where site_id = '')) a
     ), part as (
       select v.*, ${side} as side from vital v join asked s using (site_id)
        where v.cluster_id = :clusterId and v.slot >= :since::timestamptz - interval '5 seconds'
     ), slots as (
       select site_id, side, slot, sum(nodes) as nodes, sum(requests) as requests, sum(origin_5xx) as origin_5xx,
           sum(restarts) as restarts, sum(failed) as failed
         from part where side is not null group by 1, 2, 3
     ), codes as (
       select site_id, side, jsonb_object_agg(code, count) as codes from (
         select site_id, side, e.key as code, sum(e.value::bigint)::float8 as count
           from part, jsonb_each_text(edge_codes) e where side is not null group by 1, 2, 3) c group by 1, 2
     )
     select site_id as "siteId", side, max(nodes)::float8 as nodes, sum(requests)::float8 as requests,
         sum(origin_5xx)::float8 as "origin5xx", coalesce(codes, '{}') as "edgeCodes",
         sum(restarts)::float8 as restarts, max(failed)::float8 as failed
       from slots left join codes using (site_id, side) group by site_id, side, codes
     union all select site_id, null, 0, 0, 0, '{}', 0, 0 from watched where not origins
     union all select site_id, null, 1, 0, 0, '{}', 0, 0 from watched where origins`,
    { clusterId, number, since } as never,
  );
  const sites = new Map<string, SiteVitals>([['', nothing('', false)]]);
  const marks = rows.filter((row) => row.side === null);
  for (const { siteId, nodes } of marks) sites.set(siteId, nothing(siteId, nodes > 0));
  for (const { siteId, side, ...sums } of rows) if (side !== null) sites.get(siteId)![side] = sums;
  const ordered = [...sites.values()].sort((a, b) => (a.siteId < b.siteId ? -1 : 1));
  return { concernsAll: marks.some(({ siteId }) => siteId === ''), sites: ordered };
}

const NOTHING: Sums = { nodes: 0, requests: 0, origin5xx: 0, edgeCodes: {}, restarts: 0, failed: 0 };

function nothing(siteId: string, origins: boolean): SiteVitals {
  return { siteId, origins, changed: NOTHING, lacking: NOTHING };
}

/** Changes that may have done harm: of most of them nobody reports an error, and they need no closer look. */
export class Trouble {
  readonly #found: ReadonlySet<string>;

  constructor(found: Iterable<{ clusterId: string; siteId: string; died: boolean }>) {
    this.#found = new Set(
      [...found].map(({ clusterId, siteId, died }) => (died ? clusterId : `${clusterId} ${siteId}`)),
    );
  }

  /** Whether anything went wrong with one of the sites, '' being all of them, or a data plane of the cluster died. */
  has(clusterId: string, siteIds: readonly string[]): boolean {
    return this.#found.has(clusterId) || siteIds.some((id) => this.#found.has(`${clusterId} ${id}`));
  }
}

/** Where errors were, or data planes died, in the last `seconds`. */
export async function readTrouble(sql: Knex, seconds: number): Promise<Trouble> {
  const { rows } = await sql.raw<{ rows: { clusterId: string; siteId: string; died: boolean }[] }>(
    `select distinct cluster_id as "clusterId", site_id as "siteId", died
       from vital, lateral (values (origin_5xx > 0 or edge_5xx > 0, false), (restarts > 0, true)) v(found, died)
      where slot >= now() - make_interval(secs => ?) and found`,
    [seconds],
  );
  return new Trouble(rows);
}

/**
 * How sites fared in the ten minutes before a moment, by site; '' is drawn from a part of the traffic. What was tried by a
 * canary or taken back then is no picture of it, nor are the minutes in which that ended. From the minutes that nodes have
 * reported, where those are few from what was watched then; a site of which neither is there is left out. It changes
 * little once it is known, so it is read once for each change.
 */
export async function readBefore(
  sql: Knex,
  clusterId: string,
  since: Date,
  siteIds: readonly string[],
): Promise<Map<string, Figures>> {
  const before = await beforeFromMinutes(sql, clusterId, since, siteIds);
  const requestsOf = (id: string) => before.get(id)?.requests ?? 0;
  const few = siteIds.filter((id) => requestsOf(id) < FEW_REQUESTS);
  if (few.length > 0) {
    for (const [id, figures] of await beforeFromVitals(sql, clusterId, since, few)) {
      if (figures.requests > requestsOf(id)) before.set(id, figures);
    }
  }
  return before;
}

interface Count {
  siteId: string;
  kind: 'requests' | 'status' | 'name';
  name: string | null;
  count: number;
}

async function beforeFromMinutes(
  sql: Knex,
  clusterId: string,
  since: Date,
  siteIds: readonly string[],
): Promise<Map<string, Figures>> {
  const columns = 'site_id, requests, statuses, counts';
  const range = `cluster_id = :clusterId and minute >= :since::timestamptz - interval '${BEFORE_MINUTES} minutes'
    and minute < date_trunc('minute', :since::timestamptz)
    and not exists (select from rollout_event e where e.cluster_id = :clusterId and e.kind in ('undone', 'rolled_back')
      and minute <= e.at and minute > e.at - interval '2 minutes')`;
  const { rows } = await sql.raw<{ rows: Count[] }>(
    `with told as materialized (
       (select ${columns} from usage_minute where site_id = any(:ids) and site_id <> '' and ${range} limit ${MAX_ROWS})
       union all (select '', requests, statuses, counts from usage_minute where '' = any(:ids) and ${range} limit ${MAX_ROWS})
     )
     select site_id as "siteId", 'requests' as kind, null as name, sum(requests)::float8 as count from told group by 1
     union all select site_id, 'status', s.key, sum(s.value::bigint)::float8 from told, jsonb_each_text(statuses) s
       where s.key >= '500' group by 1, 3
     union all select site_id, 'name', n.key, sum(n.value::bigint)::float8 from told, jsonb_each_text(counts) n
       where n.key ~ '^(error|blocked|challenge[.]shown)[.]' group by 1, 3`,
    { clusterId, since, ids: [...siteIds] } as never,
  );
  return foldMinutes(rows);
}

/** Answers 5xx that somebody wanted, or that protection gave. */
const DELIBERATE = new Set(['error.site-disabled', 'error.maintenance', 'error.challenge-unavailable']);
const ERROR = 'error.';

/** Figures as nodes report them of watched sites, of what they count by the minute. */
function foldMinutes(rows: readonly Count[]): Map<string, Figures> {
  const sums = new Map<string, { requests: number; failed: number; edge: number; edgeCodes: Record<string, number> }>();
  for (const { siteId, kind, name, count } of rows) {
    const sum = sums.get(siteId) ?? { requests: 0, failed: 0, edge: 0, edgeCodes: {} };
    sums.set(siteId, sum);
    if (kind === 'requests') sum.requests += count;
    else if (kind === 'status') sum.failed += count;
    else {
      const isError = name!.startsWith(ERROR);
      if (isError) sum.edge += count;
      if (isError && !DELIBERATE.has(name!)) sum.edgeCodes[name!.slice(ERROR.length)] = count;
      else sum.requests -= count;
    }
  }
  return new Map(
    [...sums].map(([siteId, { requests, failed, edge, edgeCodes }]) => [
      siteId,
      { nodes: 0, requests: Math.max(0, requests), origin5xx: Math.max(0, failed - edge), edgeCodes },
    ]),
  );
}

async function beforeFromVitals(
  sql: Knex,
  clusterId: string,
  since: Date,
  siteIds: readonly string[],
): Promise<Map<string, Figures>> {
  const { rows } = await sql.raw<{ rows: (Figures & { siteId: string })[] }>(
    `with part as (
       select * from vital v where v.cluster_id = :clusterId and v.site_id = any(:ids) and v.track = 'S'
         and v.slot >= :since::timestamptz - interval '${BEFORE_MINUTES} minutes'
         and v.slot < :since::timestamptz - interval '5 seconds'
         and not exists (select from config_revision u where u.cluster_id = v.cluster_id and u.reason = 'change_undone'
           and v.revision >= (u.params->>'revision')::bigint and v.revision < u.number)
     ), codes as (
       select site_id, jsonb_object_agg(code, count) as codes from (
         select site_id, e.key as code, sum(e.value::bigint)::float8 as count
           from part, jsonb_each_text(edge_codes) e group by 1, 2) c group by 1
     )
     select site_id as "siteId", 0 as nodes, sum(requests)::float8 as requests, sum(origin_5xx)::float8 as "origin5xx",
         coalesce(codes, '{}') as "edgeCodes"
       from part left join codes using (site_id) group by site_id, codes`,
    { clusterId, since, ids: [...siteIds] } as never,
  );
  return new Map(rows.map(({ siteId, ...figures }) => [siteId, figures]));
}
