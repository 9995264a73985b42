// Reading the audit log, and ending it by age. What writes it is audit-entry.ts.
import type { Knex } from 'knex';
import type { Input } from '../../contract/procedure.ts';
import { type auditLogs, DEFAULT_AUDIT_DAYS } from '../../contract/resources/audit-logs.ts';
import { countedUntil, dayOf } from '../db/counted-logs.ts';
import { searchPattern } from '../db/search-pattern.ts';
import { readSetting, writeSetting } from '../db/setting.ts';

const DAY_MS = 86_400_000;
const DATE = "(?::timestamptz at time zone 'UTC')::date";

export type AuditFilter = Pick<
  Input<typeof auditLogs.list>,
  'action' | 'targetType' | 'targetId' | 'actorType' | 'actor' | 'sort'
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
  const names = filter.actor === undefined ? null : await actorsLike(sql, filter.actor);
  const matching = () => {
    const query = matchingRows(sql, filter);
    return names === null ? query : query.whereRaw('actor_name = any(?)', [names]);
  };
  const order = filter.sort === 'occurredAt' ? 'asc' : 'desc';
  const [rows, total] = await Promise.all([
    matching()
      .orderBy([
        { column: 'occurred_at', order },
        { column: 'id', order },
      ])
      .limit(limit)
      .offset(offset)
      .select<AuditRow[]>('*'),
    filter.targetId === undefined && names === null ? countByDays(sql, filter) : countRows(matching()),
  ]);
  return { rows, total };
}

/** The newest entry about a thing. */
export async function lastAuditOf(
  sql: Knex,
  target: { type: string; id: string },
): Promise<Pick<AuditRow, 'occurred_at' | 'action' | 'actor_type' | 'actor_name'> | undefined> {
  return sql('audit_entry')
    .where({ target_type: target.type, target_id: target.id })
    .orderBy([
      { column: 'occurred_at', order: 'desc' },
      { column: 'id', order: 'desc' },
    ])
    .first('occurred_at', 'action', 'actor_type', 'actor_name');
}

/** Whole days that are counted already from their numbers, what is before and after them from the entries. */
async function countByDays(sql: Knex, filter: AuditFilter): Promise<number> {
  const until = await countedUntil(sql, 'audit_entry');
  const first = filter.from && dayAfter(filter.from);
  const end = until && filter.to && filter.to < until ? dayOf(filter.to) : until;
  if (end === null || (first !== undefined && first >= end)) return countRows(matchingRows(sql, filter));
  const days = sql('audit_day').whereRaw(`day < ${DATE}`, [end]);
  if (first !== undefined) days.whereRaw(`day >= ${DATE}`, [first]);
  if (filter.action !== undefined) days.where('action', filter.action);
  if (filter.targetType !== undefined) days.where('target_type', filter.targetType);
  if (filter.actorType !== undefined) days.where('actor_type', filter.actorType);
  // One statement: an entry that is deleted meanwhile is counted on both sides or on none.
  const parts = [days.sum({ count: 'entries' }), matchingRows(sql, { ...filter, from: end }).count({ count: '*' })];
  if (first !== undefined) parts.push(matchingRows(sql, { ...filter, to: first }).count({ count: '*' }));
  const { rows } = await sql.raw<{ rows: { total: string }[] }>(
    `select ${parts.map(() => 'coalesce(?, 0)').join(' + ')} as total`,
    parts as never,
  );
  return Number(rows[0]!.total);
}

function matchingRows(sql: Knex, filter: AuditFilter): Knex.QueryBuilder {
  const query = sql('audit_entry');
  if (filter.action !== undefined) query.where('action', filter.action);
  if (filter.targetType !== undefined) query.where('target_type', filter.targetType);
  if (filter.targetId !== undefined) query.where('target_id', filter.targetId);
  if (filter.actorType !== undefined) query.where('actor_type', filter.actorType);
  if (filter.from !== undefined) query.where('occurred_at', '>=', filter.from);
  if (filter.to !== undefined) query.where('occurred_at', '<', filter.to);
  return query;
}

async function countRows(matching: Knex.QueryBuilder): Promise<number> {
  const [{ count }] = await matching.count({ count: '*' });
  return Number(count);
}

/** The first midnight, UTC, at or after the time. */
function dayAfter(time: Date): Date {
  return dayOf(new Date(time.getTime() + DAY_MS - 1));
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

const LOOKED_UP = ['site', 'node', 'cluster', 'ip_list'] as const;

/** Of the targets of these entries, those that are still there, as `<type> <id>`; null for a type that is not looked up. */
export async function targetsThere(sql: Knex, rows: readonly AuditRow[]): Promise<(row: AuditRow) => boolean | null> {
  const ids = (type: string) => rows.flatMap((row) => (row.target_type === type ? (row.target_id ?? []) : []));
  const { rows: found } = await sql.raw<{ rows: { key: string }[] }>(
    LOOKED_UP.map((type) => `select '${type} ' || id as key from ${type} where id = any(?)`).join(' union all '),
    LOOKED_UP.map(ids) as never,
  );
  const there = new Set(found.map(({ key }) => key));
  const looked: readonly (string | null)[] = LOOKED_UP;
  return ({ target_type, target_id }) =>
    target_id !== null && looked.includes(target_type) ? there.has(`${target_type} ${target_id}`) : null;
}

/** The names of actors there are entries of that have the text in them; as many steps as there are names. */
async function actorsLike(sql: Knex, text: string): Promise<string[]> {
  const { rows } = await sql.raw<{ rows: { name: string }[] }>(
    `select name from unnest((${stepThrough('actor_name')})) as name where lower(name) like ?`,
    [searchPattern(text.trim().toLowerCase())],
  );
  return rows.map(({ name }) => name);
}

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
