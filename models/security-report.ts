// Reports of nodes about attacks, stored as a whole or not at all.
import type { Knex } from 'knex';
import type { Pool } from 'pg';

export interface ReportedHeavy {
  value: string;
  count: number;
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

/** Stores a report; what concerns sites of other clusters is left out. */
export async function storeSecurityReport(
  pool: Pick<Pool, 'query'>,
  node: { nodeId: string; clusterId: string },
  { events, sites, dropped }: SecurityReport,
  now: Date,
): Promise<void> {
  await pool.query({
    name: 'security-report',
    text: 'select security_report($1, $2, $3, $4, $5, $6)',
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
