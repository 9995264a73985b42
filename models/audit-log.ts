// Reading the audit log, and ending it by age. What writes it is audit-entry.ts.
import type { Knex } from 'knex';
import type { Input } from '../contract/procedure.ts';
import { type auditLogs, DEFAULT_AUDIT_DAYS } from '../contract/resources/audit-logs.ts';
import { readSetting, writeSetting } from './setting.ts';

export type AuditFilter = Pick<
  Input<typeof auditLogs.list>,
  'action' | 'targetType' | 'targetId' | 'actorType' | 'sort'
> & {
  from: Date | undefined;
  to: Date | undefined;
};

export interface AuditRow {
  id: string;
  occurred_at: Date;
  actor_type: Input<typeof auditLogs.list>['actorType'] & string;
  actor_id: string | null;
  actor_name: string | null;
  ip: string | null;
  user_agent: string | null;
  action: string;
  target_type: string | null;
  target_id: string | null;
  target_name: string | null;
  metadata: Record<string, unknown>;
}

/** A page of the entries that pass the filter, newest first unless sorted otherwise, and how many pass it. */
export async function auditPage(
  sql: Knex,
  filter: AuditFilter,
  limit: number,
  offset: number,
): Promise<{ rows: AuditRow[]; total: number }> {
  const matching = () => {
    const query = sql('audit_entry');
    if (filter.action !== undefined) query.where('action', filter.action);
    if (filter.targetType !== undefined) query.where('target_type', filter.targetType);
    if (filter.targetId !== undefined) query.where('target_id', filter.targetId);
    if (filter.actorType !== undefined) query.where('actor_type', filter.actorType);
    if (filter.from !== undefined) query.where('occurred_at', '>=', filter.from);
    if (filter.to !== undefined) query.where('occurred_at', '<', filter.to);
    return query;
  };
  const order = filter.sort === 'occurredAt' ? 'asc' : 'desc';
  const [rows, count] = await Promise.all([
    matching()
      .orderBy([
        { column: 'occurred_at', order },
        { column: 'id', order },
      ])
      .limit(limit)
      .offset(offset)
      .select<AuditRow[]>('*'),
    matching().count<{ count: string }[]>(),
  ]);
  return { rows, total: Number(count[0]!.count) };
}

const FACETS = ['action', 'target_type', 'actor_type'] as const;
export type AuditFacets = Record<(typeof FACETS)[number], string[]>;

// Steps from each value to the next one in an index, so that the cost follows the values and not the entries.
const stepThrough = (column: string) => `
  with recursive step as (
    (select ${column} as value from audit_entry where ${column} is not null order by ${column} limit 1)
    union all
    select (select ${column} from audit_entry where ${column} > step.value order by ${column} limit 1)
      from step where step.value is not null)
  select coalesce(array_agg(value) filter (where value is not null), '{}') from step`;
const ALL_FACETS = `select ${FACETS.map((column) => `(${stepThrough(column)}) as ${column}`).join(', ')}`;

/** The values there are entries of, in order. */
export async function auditFacets(sql: Knex): Promise<AuditFacets> {
  const { rows } = await sql.raw<{ rows: AuditFacets[] }>(ALL_FACETS);
  return rows[0]!;
}

export const AUDIT_RETENTION = 'audit_retention';

/** For how many days entries are kept. */
export async function readAuditDays(sql: Knex): Promise<number> {
  return (await readSetting<{ days: number }>(sql, AUDIT_RETENTION))?.days ?? DEFAULT_AUDIT_DAYS;
}

export async function writeAuditDays(sql: Knex, days: number, now: Date): Promise<void> {
  await writeSetting(sql, AUDIT_RETENTION, { days }, now);
}
