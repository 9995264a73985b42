// Silences: while one lasts, the alerts that match it are recorded and not told.
import type { Knex } from 'knex';
import type { AlertKind } from '../../contract/resources/alerts.ts';

export interface AlertSilenceRow {
  id: string;
  /** Empty: all kinds. */
  kinds: AlertKind[];
  resourceId: string | null;
  resourceName: string;
  reason: string;
  createdBy: string;
  createdAt: Date;
  endsAt: Date;
}

/** SQL: what the alert `a` is about; empty for the installation. */
export const RESOURCE = `coalesce(a.site_id, a.node_id, a.cluster_id, a.certificate_id, a.upgrade_id, '')`;

/** SQL: a silence that lasts matches the alert `a`. There are few of them. */
export const SILENCED = `exists (select from alert_silence z where z.ends_at > now()
  and (z.kinds = '{}' or a.kind = any(z.kinds)) and (z.resource_id is null or z.resource_id = ${RESOURCE}))`;

const SELECT = `select id, kinds, resource_id as "resourceId", resource_name as "resourceName", reason, created_by as "createdBy",
    created_at as "createdAt", ends_at as "endsAt"
  from alert_silence`;

/** Those that last, the next to end first. */
export async function alertSilences(sql: Knex): Promise<AlertSilenceRow[]> {
  const { rows } = await sql.raw<{ rows: AlertSilenceRow[] }>(`${SELECT} where ends_at > now() order by ends_at, id`);
  return rows;
}

/** Counts those that last, deletes the others, and keeps others from adding one until the end of the transaction. */
export async function countAlertSilences(sql: Knex): Promise<number> {
  await sql.raw('lock table alert_silence in share row exclusive mode');
  await sql.raw('delete from alert_silence where ends_at <= now()');
  const { rows } = await sql.raw<{ rows: { count: number }[] }>('select count(*)::int as count from alert_silence');
  return rows[0]!.count;
}

/** The name of a site, node, cluster or certificate; empty: there is none with the id. */
export async function resourceName(sql: Knex, id: string): Promise<string> {
  const { rows } = await sql.raw<{ rows: { name: string }[] }>(
    `select name from site where id = :id union all select name from node where id = :id
     union all select name from cluster where id = :id union all select name from certificate where id = :id limit 1`,
    { id } as never,
  );
  return rows[0]?.name ?? '';
}

export async function insertAlertSilence(sql: Knex, row: AlertSilenceRow): Promise<void> {
  const { id, kinds, resourceId, reason, createdBy, createdAt, endsAt } = row;
  await sql('alert_silence').insert({
    id,
    kinds,
    resource_id: resourceId,
    resource_name: row.resourceName,
    reason,
    created_by: createdBy,
    created_at: createdAt,
    ends_at: endsAt,
  });
}

/** Ends a silence that lasts. Undefined: there is none. */
export async function endAlertSilence(sql: Knex, id: string): Promise<Pick<AlertSilenceRow, 'reason'> | undefined> {
  const { rows } = await sql.raw<{ rows: Pick<AlertSilenceRow, 'reason'>[] }>(
    'delete from alert_silence where id = ? and ends_at > now() returning reason',
    [id],
  );
  return rows[0];
}
