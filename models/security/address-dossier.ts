// Everything that is known of one address or range. Each query reads a bounded number of rows, found by an index.
import type { Knex } from 'knex';
import {
  DOSSIER_BANS,
  DOSSIER_CLUSTERS,
  DOSSIER_EVENTS,
  DOSSIER_LISTS,
  DOSSIER_SITES,
} from '../../contract/resources/addresses.ts';
import { OF_NO_GONE_SITE } from '../bans/gone-site.ts';
import type { ClientIp } from '../clusters/client-ip.entry.ts';
import { ONLINE_SECONDS } from '../nodes/node-state.ts';
import type { IpListKindName } from '../rules/ip-list.ts';
import type { ReportedWaf } from './security-report.ts';

/** Newest rows of each source that are looked at for sites. */
const SEEN_ROWS = 1000;
/** How long heavy addresses are kept. */
const HEAVY_HOURS = 168;
/** Newest attacks of an address that are counted by hour. */
const COUNTED_ATTACKS = 10_000;

const ONLINE = `s.last_seen_at > now() - make_interval(secs => ${ONLINE_SECONDS})`;

export interface AddressBan {
  id: string;
  cidr: string;
  scope: 'site' | 'platform';
  siteId: string | null;
  siteName: string | null;
  reason: string;
  source: 'manual' | 'auto';
  by: string | null;
  createdAt: Date;
  expiresAt: Date;
  liftedAt: Date | null;
  distributed: boolean;
  covers: boolean;
}

const BAN = `b.id, b.cidr::text, b.scope, b.site_id as "siteId", t.name as "siteName", b.reason, b.source,
  coalesce(b.created_by->>'name', n.name) as by, b.created_at as "createdAt", b.expires_at as "expiresAt",
  b.lifted_at as "liftedAt", b.distributed, b.cidr >>= :cidr::inet as covers`;
const BAN_NAMES = 'left join site t on t.id = b.site_id left join node n on n.id = b.node_id';

/** Bans that have ended and touch the range, the last to end first; rows live for an hour after the end. */
export async function pastBansOf(sql: Knex, cidr: string, now: Date): Promise<AddressBan[]> {
  return bans(
    sql,
    `(lifted_at is not null or expires_at <= :now) and cidr && :cidr::inet`,
    'coalesce(b.lifted_at, b.expires_at) desc, b.id desc',
    { cidr, now },
  );
}

/** Active bans that touch the range, newest first. */
export async function activeBansOf(sql: Knex, cidr: string, now: Date): Promise<AddressBan[]> {
  const active = `lifted_at is null and expires_at > :now and cidr && :cidr::inet and ${OF_NO_GONE_SITE}`;
  return bans(sql, active, 'b.created_at desc, b.id desc', { cidr, now });
}

/** Bans that nodes enforce on the whole range: of all sites, and of the given ones; for each the one that ends last. */
export async function decidingBans(
  sql: Knex,
  cidr: string,
  siteIds: readonly string[],
  now: Date,
): Promise<AddressBan[]> {
  const { rows } = await sql.raw<{ rows: AddressBan[] }>(
    `select distinct on (b.site_id) ${BAN} from ban b ${BAN_NAMES}
      where b.lifted_at is null and b.expires_at > :now and b.distributed and b.cidr >>= :cidr::inet
        and (b.site_id is null or b.site_id = any(:siteIds)) and ${OF_NO_GONE_SITE}
      order by b.site_id, b.expires_at desc, b.id desc`,
    { cidr, siteIds, now } as never,
  );
  return rows;
}

async function bans(
  sql: Knex,
  where: string,
  order: string,
  bindings: { cidr: string; now: Date },
): Promise<AddressBan[]> {
  const { rows } = await sql.raw<{ rows: AddressBan[] }>(
    `select ${BAN} from (select * from ban b where ${where} order by ${order} limit ${DOSSIER_BANS}) b ${BAN_NAMES}
      order by ${order}`,
    bindings as never,
  );
  return rows;
}

export interface AddressList {
  id: string;
  name: string;
  kind: IpListKindName;
  entry: string;
  covers: boolean;
}

/** Lists with an entry that touches the range, each with its widest such entry: allow, block, then others. */
export async function listsOf(sql: Knex, cidr: string): Promise<AddressList[]> {
  const { rows } = await sql.raw<{ rows: AddressList[] }>(
    `select * from (
       select distinct on (l.id) l.id, l.name, l.kind, e.cidr::text as entry, e.cidr >>= :cidr::inet as covers
         from ip_list_entry e join ip_list l on l.id = e.ip_list_id where e.cidr && :cidr::inet
        order by l.id, masklen(e.cidr), e.cidr) x
      order by array_position(array['allow', 'block', 'collection'], kind), covers desc, name limit ${DOSSIER_LISTS}`,
    { cidr } as never,
  );
  return rows;
}

export interface AddressEvent {
  id: string;
  siteId: string;
  siteName: string | null;
  nodeId: string | null;
  nodeName: string | null;
  occurredAt: Date;
  level: number;
  metric: string | null;
  observed: number | null;
  threshold: number | null;
}

/** Newest events of a client on all sites; `client` is what nodes call it. */
export async function eventsOf(sql: Knex, client: string): Promise<AddressEvent[]> {
  const { rows } = await sql.raw<{ rows: AddressEvent[] }>(
    `select e.id, e.site_id as "siteId", t.name as "siteName", n.id as "nodeId", n.name as "nodeName",
        e.occurred_at as "occurredAt", e.level, e.metric, e.observed, e.threshold
       from (select * from security_event where address = :client
              order by occurred_at desc, id desc limit ${DOSSIER_EVENTS}) e
       left join site t on t.id = e.site_id left join node n on n.id = e.node_id
      order by e.occurred_at desc, e.id desc`,
    { client } as never,
  );
  return rows;
}

export interface AddressAttack {
  id: string;
  siteId: string;
  siteName: string | null;
  nodeId: string | null;
  nodeName: string | null;
  occurredAt: Date;
  waf: ReportedWaf;
}

const MATCHED = `from security_event where kind = 'waf_matched' and waf ->> 'address' = any(:addresses) and occurred_at >= :from`;

/** The newest requests of a client in which rules of the WAF matched, on all sites. `addresses`: as nodes write it. */
export async function attacksOf(sql: Knex, addresses: readonly string[], from: Date): Promise<AddressAttack[]> {
  const { rows } = await sql.raw<{ rows: AddressAttack[] }>(
    `select e.id, e.site_id as "siteId", t.name as "siteName", n.id as "nodeId", n.name as "nodeName",
        e.occurred_at as "occurredAt", e.waf
       from (select id, site_id, node_id, occurred_at, waf ${MATCHED}
              order by occurred_at desc, id desc limit ${DOSSIER_EVENTS}) e
       left join site t on t.id = e.site_id left join node n on n.id = e.node_id
      order by e.occurred_at desc, e.id desc`,
    { addresses, from } as never,
  );
  return rows;
}

/** Of the newest of them, how many there were by hours since `from`. */
export async function attackHoursOf(
  sql: Knex,
  addresses: readonly string[],
  from: Date,
): Promise<{ hour: number; matched: number; blocked: number }[]> {
  const { rows } = await sql.raw<{ rows: { hour: number; matched: number; blocked: number }[] }>(
    `select floor(date_part('epoch', occurred_at - :from::timestamptz) / 3600)::int as hour, count(*)::int as matched,
        (count(*) filter (where (waf -> 'blocked')::boolean))::int as blocked
       from (select occurred_at, waf ${MATCHED} order by occurred_at desc limit ${COUNTED_ATTACKS}) e group by 1`,
    { addresses, from } as never,
  );
  return rows;
}

export interface SeenSite {
  siteId: string;
  seenAt: Date;
}

/** Sites that are there where bans, events or heavy addresses tell of it, latest first. */
export async function sitesOf(sql: Knex, cidr: string, client: string | null): Promise<SeenSite[]> {
  const ofClient = `
       union all select site_id, occurred_at from (select site_id, occurred_at from security_event
         where address = :client order by occurred_at desc limit ${SEEN_ROWS}) e
       union all select site_id, minute from (select site_id, minute from security_heavy
         where value = :client and kind = 'address' and minute > now() - interval '${HEAVY_HOURS} hours'
         order by minute desc limit ${SEEN_ROWS}) h`;
  const { rows } = await sql.raw<{ rows: SeenSite[] }>(
    `select x.site_id as "siteId", max(x.at) as "seenAt" from (
       select site_id, created_at as at from (select site_id, created_at from ban
         where cidr && :cidr::inet and site_id is not null order by created_at desc limit ${SEEN_ROWS}) b
       ${client === null ? '' : ofClient}) x
      where exists (select from site s where s.id = x.site_id)
      group by 1 order by 2 desc, 1 limit ${DOSSIER_SITES}`,
    { cidr, ...(client === null ? {} : { client }) } as never,
  );
  return rows;
}

export interface SiteFacts {
  siteId: string;
  siteName: string;
  clusterId: string;
  enabled: boolean;
  /** As it was saved, or null. */
  protection: object | null;
  level: number;
}

/** What decides at the given sites; the level is the highest of online nodes. */
export async function siteFacts(sql: Knex, ids: readonly string[]): Promise<SiteFacts[]> {
  if (ids.length === 0) return [];
  const { rows } = await sql.raw<{ rows: SiteFacts[] }>(
    `select t.id as "siteId", t.name as "siteName", t.cluster_id as "clusterId", t.enabled, p.settings as protection,
        coalesce((select max(x.level) from site_security x
          join node n on n.id = x.node_id and n.status = 'active' and n.cluster_id = t.cluster_id
          join node_state s on s.node_id = n.id and ${ONLINE} where x.site_id = t.id), 0) as level
       from site t left join site_protection p on p.site_id = t.id where t.id = any(:ids)`,
    { ids } as never,
  );
  return rows;
}

export interface ClusterFacts {
  clusterId: string;
  clusterName: string;
  clientIp: ClientIp | null;
  /** Whether it trusts the whole range to name clients. */
  trusted: boolean;
  nodes: number;
  kernelNodes: number;
  /** Online nodes that believe the PROXY header of every peer. */
  believing: number;
}

/** Clusters by name with what decides for all their sites; with `ids` those as well, wherever they stand. */
export async function clusterFacts(sql: Knex, cidr: string, ids: readonly string[]): Promise<ClusterFacts[]> {
  const { rows } = await sql.raw<{ rows: ClusterFacts[] }>(
    `select c.id as "clusterId", c.name as "clusterName", c.client_ip as "clientIp",
        exists (select from jsonb_array_elements_text(case when c.client_ip->>'mode' = 'header'
          then c.client_ip->'trustedCidrs' else '[]' end) as t(cidr) where t.cidr::inet >>= :cidr::inet) as trusted,
        o.nodes, o.kernel as "kernelNodes", o.believing
       from (select * from cluster where id = any(:ids) or id in (
              select id from cluster order by name, id limit ${DOSSIER_CLUSTERS})) c
       cross join lateral (select count(*)::int as nodes,
           count(*) filter (where s.features @> array['kernel-ban-v1'])::int as kernel,
           count(*) filter (where s.info->'proxyPeersUnset' = 'true')::int as believing
         from node n join node_state s on s.node_id = n.id and ${ONLINE}
        where n.cluster_id = c.id and n.status = 'active') o
      order by c.name, c.id`,
    { cidr, ids } as never,
  );
  return rows;
}
