// What is shown of many security events without reading them: what weighed most, by minute, and their numbers by day.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- Heavy addresses and paths of the events of a site, by minute; a bounded number of each is kept a minute.
    create table security_heavy (
      site_id text not null,
      kind text not null check (kind in ('address', 'path')),
      minute timestamptz not null,
      value text not null,
      count bigint not null,
      primary key (site_id, kind, minute, value)
    ) with (fillfactor = 80);
    create index security_heavy_minute on security_heavy (minute, kind);
    insert into security_heavy (site_id, kind, minute, value, count)
      select site_id, kind, minute, value, count from (
        select x.*, row_number() over (partition by site_id, kind, minute order by count desc, value) as place from (
          select e.site_id, k.kind, date_trunc('minute', e.occurred_at) as minute, h.value, sum(h.count)::bigint as count
            from security_event e join site s on s.id = e.site_id
            cross join lateral (values ('address', e.top_ips), ('path', e.top_paths)) k(kind, top)
            cross join lateral jsonb_to_recordset(k.top) as h(value text, count bigint)
           where e.occurred_at > now() - interval '168 hours' group by 1, 2, 3, 4) x) y
       where place <= 32;

    -- Of counted days (counted_log); a trigger keeps it true for what is written later.
    create table security_event_day (
      site_id text not null,
      day date not null,
      kind text not null,
      events bigint not null,
      primary key (site_id, day, kind)
    );
    create index security_event_day_age on security_event_day (day);
  `);
}
