// Messages about alerts: made once for each alert, channel, beginning and end; sent at least once, always with the same id.
import type { Knex } from 'knex';
import type { AlertLocale } from '../../contract/alert-kind.ts';
import {
  ALERT_KINDS,
  ALERTS,
  type AlertKind,
  type ChannelKind,
  type SendFailure,
} from '../../contract/resources/alerts.ts';
import { RESOURCE, SILENCED } from './alert-silence.ts';

/** Alerts that are announced in one go. */
const ANNOUNCED = 200;
/** A message is sent again when its sender has not said within this time what became of it. */
const LEASE = `interval '60 seconds'`;
/** Messages of one channel that are sent at the same time: a channel that hangs leaves others their turn. */
const AT_ONCE = 2;
const ATTEMPTS = 5;
const EVENT_DAYS = 90;
/** So many messages of a channel about one kind become one. Fewer are easier to read one by one. */
const GROUPED_FROM = 4;
/** Where a channel was told of so many within this time, something big is going on: later ones are gathered. */
const INCIDENT = `interval '5 minutes'`;
const GATHERED_FOR = `interval '2 minutes'`;
/** Alerts of a group that its message names. */
export const GROUP_NAMED = 10;

/** SQL: when a message about the alert `a` that is made now is due. */
const dueAt = (channel: string, status: 'firing' | 'resolved') => `now() + case when (
  select count(*) from (select from alert_delivery x join alert y on y.id = x.alert_id
    where x.channel_id = ${channel} and x.created_at > now() - ${INCIDENT} and x.status = '${status}' and y.kind = a.kind
    limit ${GROUPED_FROM}) recent) < ${GROUPED_FROM} then interval '0' else ${GATHERED_FOR} end`;

const kindsOf = (audience: string) => ALERT_KINDS.filter((kind) => ALERTS[kind].audience === audience);

/** SQL: the channel `c` receives the alert `a`; bindings :siteKinds and :clusterKinds. */
const COVERED = `c.enabled and (c.platform or exists (
  select from alert_subscription u where u.channel_id = c.id and u.enabled and a.kind = any(u.kinds) and (
    a.kind = any(:siteKinds) and a.site_id is not null and (u.all_sites or exists (
      select from alert_subscription_site x where x.subscription_id = u.id and x.site_id = a.site_id))
    or a.kind = any(:clusterKinds) and (u.all_sites or exists (
      select from alert_subscription_site x join site s on s.id = x.site_id
        join node n on n.id = a.node_id and n.cluster_id = s.cluster_id
       where x.subscription_id = u.id)))))`;
const AUDIENCES = { siteKinds: kindsOf('site'), clusterKinds: kindsOf('cluster') };

/** What a message names, as of the beginning of the alert. */
export interface AlertFacts {
  siteId: string | null;
  /** Of the site, else of the node, certificate or cluster. */
  name: string;
  /** Id of what the alert is about; empty for the installation. */
  resourceId: string;
  detail: Record<string, string | number>;
}

/** SQL: the facts of the alert `a`. */
export const FACTS = `jsonb_build_object('siteId', a.site_id, 'detail', a.detail,
  'resourceId', ${RESOURCE},
  'name', coalesce((select name from site where id = a.site_id), (select name from site_label where site_id = a.site_id),
    (select name from node where id = a.node_id), (select name from cluster where id = a.cluster_id),
    (select name from certificate where id = a.certificate_id), a.detail ->> 'name', ''))`;

/**
 * Makes the messages of alerts that began or ended. Returns how many alerts it looked at; with fewer than it may there are no
 * more. Alerts that ended before they were looked at are told to nobody; silenced ones wait for the end of the silence.
 */
export async function announceAlerts(sql: Knex): Promise<boolean> {
  await sql.raw(
    `update alert a set silenced_at = now()
      where a.announced_at is null and a.silenced_at is null and a.resolved_at is null and ${SILENCED}`,
  );
  const began = await sql.raw<{ rowCount: number }>(
    `with picked as materialized (
       select * from alert a where announced_at is null and (resolved_at is not null or not ${SILENCED})
        order by started_at limit ${ANNOUNCED} for update of a skip locked
     ), made as (
       insert into alert_delivery (alert_id, channel_id, status, facts, due_at, created_at)
       select a.id, c.id, 'firing', ${FACTS}, ${dueAt('c.id', 'firing')}, now()
         from picked a join alert_channel c on ${COVERED}
        where a.resolved_at is null and a.kind = any(:kinds)
       on conflict do nothing
     )
     update alert set announced_at = now(), end_announced_at = alert.resolved_at from picked where alert.id = picked.id`,
    { ...AUDIENCES, kinds: ALERT_KINDS } as never,
  );
  const ended = await sql.raw<{ rowCount: number }>(
    `with picked as materialized (
       select * from alert where resolved_at is not null and announced_at is not null and end_announced_at is null
        order by resolved_at limit ${ANNOUNCED} for update skip locked
     ), firing as materialized (
       select d.* from alert_delivery d join picked p on p.id = d.alert_id where d.status = 'firing' for update of d
     ), made as (
       insert into alert_delivery (alert_id, channel_id, status, facts, due_at, created_at)
       select f.alert_id, f.channel_id, 'resolved', f.facts, ${dueAt('f.channel_id', 'resolved')}, now()
         from firing f join picked a on a.id = f.alert_id left join alert_delivery g on g.id = f.group_id
        where coalesce(g.state, f.state) = 'sent' or coalesce(g.state, f.state) = 'waiting'
          and (coalesce(g.attempts, f.attempts) > 0 or coalesce(g.leased_until, f.leased_until) is not null)
       on conflict do nothing
     ), dropped as (
       update alert_delivery d set state = 'dropped', finished_at = now() from firing f
        where d.id = f.id and f.state = 'waiting' and f.attempts = 0 and f.leased_until is null
     )
     update alert set end_announced_at = now() from picked where alert.id = picked.id`,
  );
  return began.rowCount === ANNOUNCED || ended.rowCount === ANNOUNCED;
}

/** A message to be sent now. */
export interface LeasedDelivery {
  id: string;
  status: 'firing' | 'resolved';
  kind: AlertKind;
  facts: AlertFacts;
  /** When it began, or ended. */
  occurredAt: Date;
  /** False: the cause has ended, or the channel no longer receives it. */
  current: boolean;
  channelId: string;
  channelKind: ChannelKind;
  locale: AlertLocale;
  /** Sealed. */
  config: string;
  /** Other alerts of the kind that the message tells of; constant from the first attempt on. */
  others: number;
  /** Of the first of them. */
  otherFacts: readonly AlertFacts[];
}

/**
 * Takes messages that are due, at most `limit`, for a time after which others take them again. A message about the end waits for
 * the one about the beginning.
 */
export async function leaseDeliveries(sql: Knex, limit: number): Promise<LeasedDelivery[]> {
  const { rows } = await sql.raw<{ rows: LeasedDelivery[] }>(
    `with ready as materialized (
       select d.id, d.channel_id, d.due_at, d.status, a.kind, d.attempts = 0 and d.leased_until is null as fresh
         from alert_delivery d join alert a on a.id = d.alert_id
        where d.state = 'waiting' and d.due_at <= now() and (d.leased_until is null or d.leased_until < now())
          and (d.status = 'resolved' or not ${SILENCED})
          and (d.status = 'firing' or not exists (
            select from alert_delivery f left join alert_delivery g on g.id = f.group_id
             where f.alert_id = d.alert_id and f.channel_id = d.channel_id and f.status = 'firing'
               and coalesce(g.state, f.state) = 'waiting'))
     ), placed as materialized (
       select *, count(*) over same as alike, row_number() over (same order by due_at, id) as place
         from ready window same as (partition by channel_id, kind, status, fresh)
     ), heads as materialized (
       select * from placed where not fresh or alike < ${GROUPED_FROM} or place = 1
     ), due as materialized (
       select t.id from alert_channel c cross join lateral (
         select l.id, l.due_at from heads l where l.channel_id = c.id order by l.due_at, l.id
          limit greatest(0, ${AT_ONCE} - (select count(*) from alert_delivery b
            where b.channel_id = c.id and b.state = 'waiting' and b.leased_until >= now()))) t
        order by t.due_at limit :limit
     ), held as materialized (
       select d.id from alert_delivery d join due on due.id = d.id
        where d.state = 'waiting' and (d.leased_until is null or d.leased_until < now()) for update of d skip locked
     ), leased as (
       update alert_delivery d set leased_until = now() + ${LEASE} from held where held.id = d.id returning d.*
     ), joining as materialized (
       select d.id, l.id as leader, d.facts, l.place from placed p
         join placed l on l.channel_id = p.channel_id and l.kind = p.kind and l.status = p.status and l.fresh and l.place = 1
         join held on held.id = l.id
         join alert_delivery d on d.id = p.id
        where p.fresh and p.alike >= ${GROUPED_FROM} and p.place > 1
          and d.state = 'waiting' and d.attempts = 0 and d.leased_until is null
        order by d.id for update of d skip locked
     ), joined as (
       update alert_delivery d set state = 'grouped', group_id = j.leader, finished_at = now()
         from joining j where j.id = d.id
     ), others as (
       select leader, facts, id from joining
       union all select m.group_id, m.facts, m.id from alert_delivery m where m.group_id in (select id from held)
     )
     select d.id, d.status, a.kind, d.facts, case d.status when 'firing' then a.started_at else a.resolved_at end as "occurredAt",
         (${COVERED}) and (d.status = 'resolved' or a.resolved_at is null or exists (
           select from alert_delivery m join alert o on o.id = m.alert_id
            where (m.group_id = d.id or m.id in (select id from joining j where j.leader = d.id)) and o.resolved_at is null)) as current,
         c.id as "channelId", c.kind as "channelKind", c.locale, c.config,
         (select count(*)::int from others o where o.leader = d.id) as others,
         (select coalesce(jsonb_agg(facts), '[]') from (
           select facts from others o where o.leader = d.id order by id limit ${GROUP_NAMED}) n) as "otherFacts"
       from leased d join alert a on a.id = d.alert_id join alert_channel c on c.id = d.channel_id`,
    { ...AUDIENCES, limit } as never,
  );
  return rows;
}

/** Ends a message that is not to be sent any more. */
export async function dropDelivery(sql: Knex, id: string): Promise<void> {
  await sql.raw(`update alert_delivery set state = 'dropped', finished_at = now(), leased_until = null where id = ?`, [
    id,
  ]);
}

/** Keeps what became of an attempt; after a failure it is tried again after 2, 4, 8 and 16 minutes. */
export async function noteAttempt(sql: Knex, id: string, error: SendFailure | null): Promise<void> {
  await sql.raw(
    `update alert_delivery set attempts = attempts + 1, last_error = :error::text, leased_until = null,
        state = case when :error::text is null then 'sent' when attempts + 1 >= ${ATTEMPTS} then 'failed' else 'waiting' end,
        finished_at = case when :error::text is null or attempts + 1 >= ${ATTEMPTS} then now() end,
        due_at = now() + make_interval(mins => power(2, attempts + 1)::int)
      where id = :id and state = 'waiting'`,
    { id, error } as never,
  );
}

export interface AlertEventRow {
  id: string;
  kind: AlertKind;
  facts: AlertFacts;
  startedAt: Date;
  resolvedAt: Date | null;
  silencedAt: Date | null;
  /** A silence keeps it from being told now. */
  silenced: boolean;
  deliveries: Record<'sent' | 'waiting' | 'failed' | 'dropped' | 'grouped', number>;
}

const COUNTS = ['sent', 'waiting', 'failed', 'dropped', 'grouped']
  .map((state) => `'${state}', count(*) filter (where d.state = '${state}')`)
  .join(', ');

/** The newest alerts of kinds that are told, of all sites or one. */
export async function alertEventRows(sql: Knex, siteId: string | undefined, limit: number): Promise<AlertEventRow[]> {
  const { rows } = await sql.raw<{ rows: AlertEventRow[] }>(
    `select a.id, a.kind, ${FACTS} as facts, a.started_at as "startedAt", a.resolved_at as "resolvedAt",
         a.silenced_at as "silencedAt", a.resolved_at is null and ${SILENCED} as silenced,
         (select jsonb_build_object(${COUNTS}) from alert_delivery d where d.alert_id = a.id) as deliveries
       from alert a
      where a.kind = any(:kinds) and (:siteId::text is null or a.site_id = :siteId)
        and a.started_at > now() - interval '${EVENT_DAYS} days'
      order by a.started_at desc, a.id desc limit :limit`,
    { kinds: ALERT_KINDS, siteId: siteId ?? null, limit } as never,
  );
  return rows;
}
