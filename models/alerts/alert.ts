// Alerts: one open row for each kind and subject while its cause lasts, and closed rows as history.
import type { Knex } from 'knex';

/** What an alert can be about. */
export type AlertSubject = 'site' | 'node' | 'cluster' | 'certificate' | 'upgrade' | 'installation';

/** An alert whose cause lasts. */
export interface OpenAlert {
  kind: string;
  subject: AlertSubject;
  /** Id of the subject; empty for the installation. */
  id: string;
  /** What messages name of it, as of its beginning. */
  detail?: Readonly<Record<string, string | number>>;
}

/** Subjects of one attention item that are read, at most. */
export const MAX_SUBJECTS = 1000;

/** SQL: the ids of a group as a JSON array, one more than {@link MAX_SUBJECTS} at most. */
export const subjectIds = (id: string): string =>
  `jsonb_path_query_array(jsonb_agg(distinct ${id} order by ${id}), '$[0 to ${MAX_SUBJECTS}]')`;

const columnOf = (subject: AlertSubject) => `case when f.subject = '${subject}' then f.id end`;

/**
 * Opens the alerts that are not open yet, and closes the open ones of the kinds `complete` that are not among them. Alerts of
 * other kinds stay open. Running it twice, or in two processes at once, opens one row.
 */
export async function writeAlerts(
  sql: Knex,
  alerts: readonly OpenAlert[],
  complete: readonly string[],
  now: Date,
): Promise<void> {
  await sql.raw(
    `with found as materialized (
       select distinct on (kind, id) * from jsonb_to_recordset(:alerts::jsonb) as f(kind text, subject text, id text, detail jsonb)
     ), closed as (
       update alert a set resolved_at = :now
        where a.resolved_at is null and a.kind = any(:complete::text[]) and not exists (
          select from found f where f.kind = a.kind
            and f.id = coalesce(a.site_id, a.node_id, a.cluster_id, a.certificate_id, a.upgrade_id, ''))
     )
     insert into alert (kind, started_at, detail, site_id, node_id, cluster_id, certificate_id, upgrade_id)
     select f.kind, :now, coalesce(f.detail, '{}'), ${columnOf('site')}, ${columnOf('node')}, ${columnOf('cluster')}, ${columnOf('certificate')},
         ${columnOf('upgrade')}
       from found f
     on conflict do nothing`,
    { alerts: JSON.stringify(alerts), complete, now } as never,
  );
}
