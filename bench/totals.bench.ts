// Lists of logs that grow for years: a page with its exact total, beside a plain count of the same rows in the same
// rounds. 3,000,000 audit entries of a year and 670,000 security events of one site in a month.
import knexFactory, { type Knex } from 'knex';
import { startTestStores } from '../bin/lib/test-stores.ts';
import { migrate } from '../migrations/run.ts';
import { type AuditFilter, auditPage } from '../models/audit/audit-log.ts';
import { COUNTED_LOGS, countDay } from '../models/db/counted-logs.ts';
import { eventCount, eventPage } from '../models/security/security-view.ts';
import { summary } from './lib/stats.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'pages of the audit log and of security events with their totals, beside plain counts';

const AIM_MS = 50;
const PAGE = 50;
const DAY_MS = 86_400_000;

interface Subject {
  name: string;
  page(): Promise<{ total: number }>;
  plain(): Promise<number>;
}

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const rounds = quick ? 3 : 15;
  const [entries, events] = quick ? [30_000, 10_000] : [3_000_000, 670_000];
  const stores = await startTestStores(`${process.pid}-totals`);
  await migrate(stores.postgres.url);
  const sql = knexFactory({ client: 'pg', connection: stores.postgres.url, pool: { min: 0, max: 4 } });
  try {
    await fill(sql, entries, events);
    log(`${entries} audit entries and ${events} security events are there`);
    const started = performance.now();
    for (const name of COUNTED_LOGS) while (await countDay(sql, name, new Date()));
    const countedMs = performance.now() - started;
    await sql.raw('vacuum analyze');
    const figures: Record<string, unknown> = { countedDaysMs: Math.round(countedMs) };
    const aims: BenchResult['aims'] = [];
    for (const { name, page, plain } of subjects(sql)) {
      const [ours, theirs]: [number[], number[]] = [[], []];
      for (let round = 0; round < rounds; round++) {
        const [pageMs, { total }] = await timed(page);
        const [plainMs, count] = await timed(plain);
        if (total !== count) throw new Error(`${name}: ${total} instead of ${count}`);
        ours.push(pageMs);
        theirs.push(plainMs);
      }
      const figure = { pageMs: summary(ours), plainCountMs: summary(theirs) };
      figures[name] = figure;
      const p50 = ours.toSorted((a, b) => a - b)[rounds >> 1]!;
      aims.push({ aim: `${name}: page and total p50 ≤ ${AIM_MS} ms`, reached: p50 <= AIM_MS });
    }
    return { figures, aims };
  } finally {
    await sql.destroy();
    await stores.stop();
  }
}

async function timed<T>(work: () => Promise<T>): Promise<[number, T]> {
  const started = performance.now();
  const answer = await work();
  return [performance.now() - started, answer];
}

function subjects(sql: Knex): Subject[] {
  const audit = (name: string, filter: Partial<AuditFilter>): Subject => ({
    name,
    page: () => auditPage(sql, { from: undefined, to: undefined, ...filter }, PAGE, 0),
    async plain() {
      const query = sql('audit_entry');
      if (filter.action) query.where('action', filter.action);
      if (filter.from) query.where('occurred_at', '>=', filter.from);
      return countOf(query);
    },
  });
  const ofSite = (name: string, kind: string | undefined): Subject => ({
    name,
    async page() {
      const [, total] = await Promise.all([eventPage(sql, 'busy', kind, PAGE, 0), eventCount(sql, 'busy', kind)]);
      return { total };
    },
    plain: () => countOf(sql('security_event').where({ site_id: 'busy', ...(kind ? { kind } : {}) })),
  });
  return [
    audit('audit log', {}),
    audit('audit log of an action', { action: 'site.update' }),
    audit('audit log of 90 days', { from: new Date(Date.now() - 90 * DAY_MS) }),
    ofSite('events of a site', undefined),
    ofSite('events of a site and kind', 'ip_banned'),
  ];
}

async function countOf(query: Knex.QueryBuilder): Promise<number> {
  const [row] = await query.count({ count: '*' });
  return Number(row.count);
}

async function fill(sql: Knex, entries: number, events: number): Promise<void> {
  await sql.raw(
    `insert into audit_entry (occurred_at, actor_type, action, target_type, target_id)
     select now() - n * interval '365 days' / ?, (array['user', 'api_key', 'system'])[1 + n % 3],
         (array['site.update', 'ban.create', 'ban.delete', 'auth.sign_in', 'site.protection_update'])[1 + n % 5],
         (array['site', 'ban', 'user'])[1 + n % 3], (n % 10000)::text
       from generate_series(1, ?) n`,
    [entries, entries],
  );
  await sql.raw(
    `select range_partition('security_event', (now() at time zone 'UTC')::date - d, 1) from generate_series(0, 30) d`,
  );
  await sql.raw(
    `insert into security_event (occurred_at, node_id, site_id, kind, level, previous_level, top_ips, top_paths)
     select now() - n * interval '29 days' / ?, 'node', 'busy',
         (array['site_level', 'path_level', 'ip_banned'])[1 + n % 3], 1, 0, '[]', '[]' from generate_series(1, ?) n`,
    [events, events],
  );
}
