// Reports of nodes about attacks, stored as a whole or not at all.
import type { Knex } from 'knex';
import type { Pool } from 'pg';
import { LIVE } from '../db/live-hint.ts';

export interface ReportedHeavy {
  value: string;
  count: number;
}

/** Rules that are told of a request, and places where they matched. */
export const MAX_WAF_RULES = 16;
export const MAX_WAF_MATCHES = 32;

export interface ReportedWafMatch {
  rule: number;
  /** all: a part that exclusions do not know. */
  part: string;
  name: string;
  /** What matched, masked; not there unless the site wants it told. */
  value?: string;
  /** What the rule's matches there add to the score; not there from a node that does not count them. */
  points?: number;
}

/** A request in which rules of the WAF matched. */
export interface ReportedWaf {
  requestId: string;
  method: string;
  path: string;
  address: string | null;
  rules: number[];
  score: number;
  threshold: number;
  blocked: boolean;
  matches: ReportedWafMatch[];
  /** How many rules, and places, there were; not there from a node that does not count them. */
  rulesSeen?: number;
  matchesSeen?: number;
}

export interface ReportedEvent {
  /** The node's name of it: what has one is stored once. */
  id: string;
  siteId: string;
  occurredAt: Date;
  kind: string;
  level: number;
  previousLevel: number;
  path: string | null;
  address: string | null;
  metric: string | null;
  observed: number | null;
  threshold: number | null;
  topIps: ReportedHeavy[];
  topPaths: ReportedHeavy[];
  /** Of waf_matched alone. */
  waf: ReportedWaf | null;
}

export interface ReportedSite {
  siteId: string;
  level: number;
  paths: { path: string; level: number }[];
}

export interface SecurityReport {
  events: readonly ReportedEvent[];
  /** Everything above normal at the node; null = the report does not say. */
  sites: readonly ReportedSite[] | null;
  dropped: bigint;
}

/**
 * Stores a report; what concerns sites of other clusters is left out. Tells of sites with events, and of those whose level
 * or paths above normal are others than the node's last report said.
 */
export async function storeSecurityReport(
  pool: Pick<Pool, 'query'>,
  node: { nodeId: string; clusterId: string },
  { events, sites, dropped }: SecurityReport,
  now: Date,
): Promise<void> {
  await pool.query({
    name: 'security-report',
    // The parts of one statement see what was before all of them.
    text: `with before as (select site_id, level, paths from site_security where node_id = $1),
      after as (select "siteId" as site_id, level, paths
        from jsonb_to_recordset($5::jsonb) as r("siteId" text, level smallint, paths jsonb)),
      levels as (select site_id from before full join after using (site_id)
        where $5::jsonb is not null and (before.level, before.paths) is distinct from (after.level, after.paths)),
      events as (select e."siteId" as site_id from jsonb_to_recordset($4::jsonb) as e("siteId" text)),
      told as (insert into outbox (topic, key) select '${LIVE}', h.key from site s
        join (select site_id, 'incidents ' || site_id as key from levels
          union select site_id, 'security ' || site_id from levels
          union select site_id, 'security ' || site_id from events) as h on h.site_id = s.id
        where s.cluster_id = $2)
      select security_report($1, $2, $3, $4, $5, $6)`,
    values: [
      node.nodeId,
      node.clusterId,
      now,
      JSON.stringify(events),
      sites && JSON.stringify(sites),
      dropped.toString(),
    ],
  });
}

const REVIEWED_AT_ONCE = 500;

/** Looks at the alert cc_mitigation of every site that is above normal, has one open or one held back. */
export async function reviewCcAlerts(sql: Knex, now: Date): Promise<void> {
  const { rows } = await sql.raw<{ rows: { site_id: string }[] }>(
    `select site_id from site_security where level > 0
     union select site_id from alert where kind = 'cc_mitigation' and resolved_at is null
     union select site_id from alert_held where kind = 'cc_mitigation'`,
  );
  for (let at = 0; at < rows.length; at += REVIEWED_AT_ONCE) {
    const sites = rows.slice(at, at + REVIEWED_AT_ONCE).map(({ site_id }) => site_id);
    await sql.raw(`select cc_alerts(?, ?, '{}')`, [now, sites as never]);
  }
}
