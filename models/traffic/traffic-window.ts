// Sums of sites: a closed window with new counts is summed again, and what differs is added to its hour and its day. The
// cost follows the sites whose counts changed.
import type { Knex } from 'knex';
import { ADD, AMOUNTS, type Amount, LEVELS, list, startOf } from './traffic-columns.ts';

const WINDOW = `interval '5 minutes'`;
/** The order in which windows are summed. Nothing else is locked while it is held. */
const LOCK_TRAFFIC = 'select pg_advisory_xact_lock(1398162180, 4)';

export interface DirtyWindow {
  start: Date;
  generation: string;
}

/** Nodes have reported the last minute of a window so long after it: it is summed once, not for each of them. */
const LATENCY = `interval '90 seconds'`;

/** Closed windows that wait, the oldest first, at most so many. */
export async function dirtyWindows(sql: Knex, limit: number): Promise<DirtyWindow[]> {
  const { rows } = await sql.raw<{ rows: DirtyWindow[] }>(
    `select window_start as start, generation from traffic_dirty where window_start + ${WINDOW} + ${LATENCY} <= now()
      order by window_start limit ?`,
    [limit],
  );
  return rows;
}

/** The window is summed, unless counts came meanwhile. */
export async function endWindow(sql: Knex, { start, generation }: DirtyWindow): Promise<void> {
  await sql.raw(
    `with ended as (delete from traffic_dirty where window_start = :start and generation = :generation)
     update traffic_state set summed_until = greatest(summed_until, :start::timestamptz + ${WINDOW})`,
    { start, generation } as never,
  );
}

/** What of the figures is an amount of its own. */
const KEYS: Partial<Record<Amount, string>> = Object.fromEntries(
  [1, 2, 3, 4, 5].map((first) => [`s${first}`, `key like 's:${first}%'`]),
);
const FIGURED = Object.entries(KEYS)
  .map(([amount, condition]) => `coalesce(sum(n) filter (where ${condition}), 0) as ${amount}`)
  .join(', ');
const SUMMED = AMOUNTS.filter((amount) => !KEYS[amount]);
const summedOf = (amount: Amount) => (KEYS[amount] ? `coalesce(f.${amount}, 0)` : `a.${amount}`);

/** Sums the window of one of so many parts of the sites. */
export async function sumWindow(sql: Knex, start: Date, { part, of }: { part: number; of: number }): Promise<void> {
  await sql.transaction(async (trx) => {
    await trx.raw(LOCK_TRAFFIC);
    await trx.raw(
      `with counted as materialized (
         select site_id as id, ${SUMMED.join(', ')}, statuses, counts, latency from usage_counted
          where minute >= :start::timestamptz and minute < :start::timestamptz + ${WINDOW} and site_id <> ''
            and (hashtext(site_id) & 1023) % :of = :part
       ), keyed as (
         select id, key, sum(n) as n from (
           select id, 's:' || key as key, value::numeric as n from counted, jsonb_each_text(statuses)
           union all select id, 'n:' || key, value::numeric from counted, jsonb_each_text(counts)
           union all select id, 'l:' || (place - 1), b.n
             from counted, unnest(latency) with ordinality as b(n, place) where b.n > 0) k
          group by id, key
       ), figured as (
         select id, jsonb_object_agg(key, n) as figures, ${FIGURED} from keyed group by id
       ), summed as (
         select a.id, ${list((amount) => `${summedOf(amount)} as ${amount}`)}, f.figures from (
           select id, ${SUMMED.map((amount) => `sum(${amount}) as ${amount}`).join(', ')} from counted group by id) a
           left join figured f using (id)
       ), differing as materialized (
         select s.*, o.figures as before, ${list((amount) => `s.${amount} - coalesce(o.${amount}, 0) as more_${amount}`)}
           from summed s left join traffic_window o on o.kind = 'site' and o.id = s.id and o.starts_at = :start
          where (${list((amount) => `o.${amount}`)}, o.figures) is distinct from (${list((amount) => `s.${amount}`)}, s.figures)
          order by s.id
       ), added as materialized (
         select 'site' as kind, id, ${list((amount) => `more_${amount} as ${amount}`)},
             figures_sum(figures, before, -1) as figures from differing
       ), hours as (${addTo(3600)}
       ), days as (${addTo(86400)}
       )
       insert into traffic_window as t (kind, id, starts_at, ${list((amount) => amount)}, figures)
         select 'site', id, :start, ${list((amount) => amount)}, figures from differing
         on conflict (kind, id, starts_at) do update set ${list((amount) => `${amount} = excluded.${amount}`)},
           figures = excluded.figures`,
      { start, part, of } as never,
    );
  });
}

function addTo(seconds: 3600 | 86400): string {
  return `insert into ${LEVELS[seconds]} as t (kind, id, starts_at, ${list((amount) => amount)}, figures)
    select kind, id, ${startOf(seconds, ':start::timestamptz')}, ${list((amount) => amount)}, figures from added order by id
    ${ADD}`;
}
