// Bans that nodes made by themselves and reported. A report is merged, shared or kept for viewing, or refused:
//
// | Scope    | The address is of                                   | Stored                                             |
// |----------|-----------------------------------------------------|----------------------------------------------------|
// | site     | a node of the cluster, an allow list                | not at all                                         |
// | platform | a node of the reporting cluster, an allow list      | as lifted: its nodes delete their copies           |
// | platform | a node or a trusted proxy of another cluster        | never shared                                       |
// | any      | anybody else                                        | shared if the settings say so when it is first made |
//
// One entry per node, site and address, or per address on the platform, where an active manual ban excludes any; a
// repeated report only moves its end. Site and platform bans have fixed limits; what is beyond them is not stored.
import type { Knex } from 'knex';
import { type Cidr, formatCidr, overlaps, parseCidr } from '../../contract/scalars/cidr.ts';
import type { Tx } from '../../runtime/write.ts';
import { hint, leaveHints } from '../db/live-hint.ts';
import { LOCK_BAN_REPORTS } from '../db/locks.ts';
import { keepSites } from '../sites/site.ts';
import type { BanTrigger } from './ban.ts';
import { shareBanGuard } from './ban-guard.ts';
import { announceReportedBans } from './ban-numbers.ts';
import { readBanSettings } from './ban-setting.ts';
import { OF_NO_GONE_SITE } from './gone-site.ts';

export interface ReportedBan {
  /** Null = every site: scan protection. */
  siteId: string | null;
  cidr: string;
  reason: string;
  trigger: BanTrigger;
  createdAt: Date;
  expiresAt: Date;
}

export interface ReportingNode {
  id: string;
  clusterId: string;
}

/** Active automatic bans, at most, of one cluster's sites and of the platform. */
export const MAX_AUTOMATIC_BANS = 10_000;
/** Reports taken at once; callers cut longer ones. */
export const MAX_REPORTS = 1000;
const LONGEST_MS = 7 * 86_400_000;
/** Until bans are announced, which is last. */
const NO_NUMBER = 0;
/** The reason that each scope's automatic bans have. */
const SITE_REASON = 'cc_ip_rate';
const PLATFORM_REASON = 'unknown_host_scan';
/** Loopback and unspecified addresses. */
const NEVER = ['127.0.0.0/8', '0.0.0.0/8', '::/64'].map((text) => parseCidr(text)!);

interface Judged extends ReportedBan {
  ownSite: boolean;
  protectedHere: boolean;
  protectedElsewhere: boolean;
}

interface Stored {
  id: string;
  distributed: boolean;
  lifted: boolean;
}

/** Merges a node's reports; answers how many bans were made or extended. */
export async function recordAutomaticBans(
  tx: Tx,
  node: ReportingNode,
  reports: readonly ReportedBan[],
): Promise<number> {
  const acceptable = distinct(reports.slice(0, MAX_REPORTS).flatMap((report) => normalise(report, tx.now)));
  if (acceptable.length === 0) return 0;
  await lockReports(tx.sql, node, acceptable);
  await shareBanGuard(tx.sql);
  const { shareAutoBans } = await readBanSettings(tx.sql);
  await keepSites(tx.sql, node.clusterId, new Set(acceptable.flatMap(({ siteId }) => siteId ?? [])));
  const judged = await judge(tx, node, acceptable);
  const site = judged.filter(({ siteId, ownSite, protectedHere }) => siteId !== null && ownSite && !protectedHere);
  const platform = judged.filter(({ siteId }) => siteId === null);
  if (site.length + platform.length === 0) return 0;
  await retireExpired(tx, node, platform.length > 0);
  const bannable = platform.filter(({ protectedHere }) => !protectedHere);
  const calledBack = platform.filter(({ protectedHere }) => protectedHere);
  await lockKnown(tx.sql, node, 'site', site);
  const met = await lockKnown(tx.sql, node, 'platform', bannable);
  const stored = [
    ...(await upsert(tx, node, 'site', site, shareAutoBans)),
    ...(await upsert(tx, node, 'platform', bannable, shareAutoBans)),
    ...(await insertLifted(tx, node, calledBack)),
  ];
  // Those that no node is told of are shown all the same.
  if (stored.some(({ distributed, lifted }) => !distributed && !lifted)) {
    await leaveHints(tx.sql, [hint('bans', node.clusterId)]);
  }
  await announceReportedBans(
    tx,
    stored.map(({ id }) => id),
    met,
  );
  return stored.length;
}

/** Other reports wait here and not for rows of this one; a cluster comes before the platform. */
async function lockReports(sql: Knex, { clusterId }: ReportingNode, reports: readonly ReportedBan[]): Promise<void> {
  if (reports.some(({ siteId }) => siteId !== null)) await sql.raw(LOCK_BAN_REPORTS, [clusterId]);
  if (reports.some(({ siteId }) => siteId === null)) await sql.raw(LOCK_BAN_REPORTS, ['']);
}

/** One address, the reason of its scope, an end within 7 days of its beginning and not past; else nothing. */
function normalise(report: ReportedBan, now: Date): ReportedBan[] {
  const cidr = parseCidr(report.cidr);
  if (!cidr || !isOneClient(cidr) || NEVER.some((range) => overlaps(range, cidr))) return [];
  if (report.reason !== (report.siteId === null ? PLATFORM_REASON : SITE_REASON)) return [];
  const createdAt = report.createdAt < now ? report.createdAt : now;
  const expiresAt = new Date(Math.min(report.expiresAt.getTime(), createdAt.getTime() + LONGEST_MS));
  return expiresAt > now ? [{ ...report, cidr: formatCidr(cidr), createdAt, expiresAt }] : [];
}

function isOneClient({ family, prefix }: Cidr): boolean {
  return prefix === (family === 4 ? 32 : 64);
}

/** One report an address: the one that ends last. */
function distinct(reports: readonly ReportedBan[]): ReportedBan[] {
  const byTarget = new Map<string, ReportedBan>();
  for (const report of reports) {
    const key = `${report.siteId ?? ''} ${report.cidr}`;
    const other = byTarget.get(key);
    if (!other || other.expiresAt < report.expiresAt) byTarget.set(key, report);
  }
  return [...byTarget.values()];
}

async function judge(tx: Tx, node: ReportingNode, reports: readonly ReportedBan[]): Promise<Judged[]> {
  const { rows } = await tx.sql.raw<{ rows: Omit<Judged, keyof ReportedBan>[] }>(
    `select
       exists (select from site s where s.id = r.site and s.cluster_id = :cluster) as "ownSite",
       exists (select from node_address a where a.address <<= r.cidr and a.cluster_id = :cluster)
         or exists (select from ip_list_entry e join ip_list l on l.id = e.ip_list_id
                     where e.cidr && r.cidr and l.kind = 'allow') as "protectedHere",
       exists (select from node_address a where a.address <<= r.cidr and a.cluster_id <> :cluster)
         or exists (select from cluster c, jsonb_array_elements_text(c.client_ip->'trustedCidrs') as t(trusted)
                     where r.cidr && t.trusted::inet) as "protectedElsewhere"
     from unnest(:sites::text[], :cidrs::cidr[]) with ordinality as r(site, cidr, position) order by r.position`,
    {
      cluster: node.clusterId,
      sites: reports.map(({ siteId }) => siteId) as never,
      cidrs: reports.map(({ cidr }) => cidr) as never,
    },
  );
  return rows.map((row, index) => ({ ...reports[index]!, ...row }));
}

/** Expired bans make way for new ones of their addresses; there are few, because they are deleted after an hour. */
async function retireExpired(tx: Tx, node: ReportingNode, ofPlatform: boolean): Promise<void> {
  await tx.sql.raw(
    `update ban set lifted_at = expires_at
      where source = 'auto' and lifted_at is null and expires_at <= ? and (cluster_id = ? or ? and cluster_id is null)`,
    [tx.now, node.clusterId, ofPlatform],
  );
}

const CONFLICT = {
  site: `(node_id, site_id, cidr) where source = 'auto' and scope = 'site' and lifted_at is null`,
  platform: `(cidr) where source = 'auto' and scope = 'platform' and lifted_at is null`,
} as const;

/**
 * Whoever lifts one of the bans comes first, and is seen by the next statement, or after this transaction. Answers the
 * ids of those that are locked.
 */
async function lockKnown(
  sql: Knex,
  node: ReportingNode,
  scope: 'site' | 'platform',
  reports: readonly ReportedBan[],
): Promise<string[]> {
  if (reports.length === 0) return [];
  const { rows } = await sql.raw<{ rows: { id: string }[] }>(
    `select id from ban where source = 'auto' and scope = :scope and lifted_at is null and cidr = any(:cidrs::cidr[])
        and (:scope = 'platform' or (node_id = :node and site_id = any(:sites)))
      order by cidr, site_id for update`,
    {
      scope,
      node: node.id,
      cidrs: reports.map(({ cidr }) => cidr),
      sites: reports.map(({ siteId }) => siteId),
    } as never,
  );
  return rows.map(({ id }) => id);
}

async function upsert(
  tx: Tx,
  node: ReportingNode,
  scope: 'site' | 'platform',
  reports: readonly Judged[],
  share: boolean,
): Promise<Stored[]> {
  if (reports.length === 0) return [];
  const clusterId = scope === 'site' ? node.clusterId : null;
  const { rows } = await tx.sql.raw<{ rows: Stored[] }>(
    `with report as (
       select r.*, exists (
           select from ban b where b.source = 'auto' and b.scope = :scope and b.lifted_at is null and b.cidr = r.cidr
              and (:scope = 'platform' or (b.node_id = :node and b.site_id = r.site_id))) as known
         from jsonb_to_recordset(cast(:reports as jsonb)) as r(site_id text, cidr cidr, reason text, trigger jsonb,
           created_at timestamptz, expires_at timestamptz, distributed boolean)
        where (:scope = 'site' or not exists (
            select from ban m where m.source = 'manual' and m.scope = 'platform' and m.cidr = r.cidr
               and m.lifted_at is null and m.expires_at > :now))
          -- A report that was on its way, or is repeated, brings back nothing that was lifted after it was made.
          and not exists (
            select from ban l where l.source = 'auto' and l.scope = :scope and l.cidr = r.cidr
               and (:scope = 'platform' or (l.node_id = :node and l.site_id = r.site_id))
               and l.lifted_at < l.expires_at and l.lifted_at >= r.created_at)
     ), counted as (
       select count(*) as n from ban b
        where source = 'auto' and lifted_at is null and cluster_id is not distinct from :cluster and ${OF_NO_GONE_SITE}
     ), fitting as (
       select * from (select r.*, row_number() over (partition by known order by created_at) as place from report r) r
        where known or place <= ${MAX_AUTOMATIC_BANS} - (select n from counted)
     )
     insert into ban as b (scope, site_id, cluster_id, cidr, reason, source, node_id, trigger, distributed,
       created_at, expires_at, seq)
     select :scope, site_id, :cluster, cidr, reason, 'auto', :node, trigger, distributed, created_at, expires_at,
       ${NO_NUMBER} from fitting order by cidr, site_id
     on conflict ${CONFLICT[scope]} do update
       set expires_at = excluded.expires_at, trigger = excluded.trigger
       where b.expires_at < excluded.expires_at
     returning id, distributed, false as lifted`,
    {
      scope,
      node: node.id,
      cluster: clusterId,
      now: tx.now,
      reports: toJson(reports, ({ protectedElsewhere }) => share && !(scope === 'platform' && protectedElsewhere)),
    },
  );
  return rows;
}

/** Rows that tell the reporting cluster's nodes to delete their own bans; not again while an equal one is kept. */
async function insertLifted(tx: Tx, node: ReportingNode, reports: readonly Judged[]): Promise<Stored[]> {
  if (reports.length === 0) return [];
  const { rows } = await tx.sql.raw<{ rows: Stored[] }>(
    `insert into ban (scope, cluster_id, cidr, reason, source, node_id, trigger, distributed, created_at, expires_at,
       lifted_at, seq)
     select 'platform', :cluster, r.cidr, r.reason, 'auto', :node, r.trigger, false, r.created_at, r.expires_at, :now,
       ${NO_NUMBER}
       from jsonb_to_recordset(cast(:reports as jsonb)) as r(cidr cidr, reason text, trigger jsonb,
         created_at timestamptz, expires_at timestamptz)
      where not exists (select from ban b where b.source = 'auto' and b.scope = 'platform' and b.cidr = r.cidr
        and b.cluster_id = :cluster and b.lifted_at is not null and b.expires_at >= r.expires_at)
     returning id, distributed, true as lifted`,
    { cluster: node.clusterId, node: node.id, now: tx.now, reports: toJson(reports, () => false) },
  );
  return rows;
}

function toJson(reports: readonly Judged[], isShared: (report: Judged) => boolean): string {
  return JSON.stringify(
    reports.map((report) => ({
      site_id: report.siteId,
      cidr: report.cidr,
      reason: report.reason,
      trigger: report.trigger,
      created_at: report.createdAt,
      expires_at: report.expiresAt,
      distributed: isShared(report),
    })),
  );
}
