// Rows of request logs in PostgreSQL: COPY into a table of the connection, and from there into the days without doubles.
import { crc32 } from 'node:zlib';
import type { Pool, PoolClient } from 'pg';
import { DEFAULT_LOG_SETTINGS } from '../../contract/resources/log-settings.ts';
import { copyIn } from '../db/copy-in.ts';
import { DAY_MS, dayOf } from '../db/partitions.ts';
import type { LogRow, MissingReason } from './log-row.ts';
import type { Appended, LogBatch, LogWriter } from './log-writer.ts';

/** In the order of {@link logFields}. */
export const LOG_COLUMNS: readonly string[] = [
  ...[
    'site_id',
    'site_hash',
    'at',
    'id',
    'node_id',
    'client_ip',
    'method',
    'host',
    'path',
    'status',
    'bytes_sent',
    'request_bytes',
  ],
  ...['duration_ms', 'sample_rate', 'request_id', 'request_hash', 'cache_status', 'ja4', 'waf_rule_ids', 'waf_blocked'],
  ...[
    'user_agent',
    'referer',
    'rule_ids',
    'peer_ip',
    'http_version',
    'secure',
    'country',
    'asn',
    'as_name',
    'upstream',
  ],
  ...[
    'upstream_status',
    'upstream_ms',
    'content_type',
    'tls_version',
    'block_reason',
    'block_rule_id',
    'query',
    'headers',
  ],
  'error_code',
];
const KEPT_MS = 30_000;
/** Data exceptions and violations of constraints: about a row, whatever else is in the batch. */
const ABOUT_A_ROW = /^2[23]/;

export class PostgresLogWriter implements LogWriter {
  readonly #pool: Pool;
  readonly #now: () => number;
  /** Days that are there, by their first moments. */
  readonly #days = new Set<number>();
  #keep = { from: 0, until: 0 };

  constructor(pool: Pool, now: () => number = Date.now) {
    this.#pool = pool;
    this.#now = now;
  }

  async append(batch: LogBatch): Promise<Appended> {
    const client = await this.#pool.connect();
    let broken: Error | undefined;
    try {
      const keepFrom = await this.#keepFrom(client);
      const young = batch.rows.filter(({ at }) => at >= keepFrom);
      await this.#makeDays(client, young);
      const tooOld = batch.rows.filter(({ at }) => at < keepFrom);
      return await this.#append(client, batch, young, tooOld).catch((error) => {
        // A day may have been dropped meanwhile.
        this.#days.clear();
        this.#keep.until = 0;
        throw error;
      });
    } catch (error) {
      broken = error as Error;
      throw error;
    } finally {
      client.release(broken);
    }
  }

  async #append(
    client: PoolClient,
    batch: LogBatch,
    young: readonly LogRow[],
    tooOld: readonly LogRow[],
  ): Promise<Appended> {
    await client.query('begin');
    const known = await sitesOf(client, batch);
    const own = young.filter(({ siteId }) => known.has(siteId));
    const { stored, refused } = await insert(client, own);
    const missing = new Missing(known);
    for (const { siteId, reason, rows } of batch.aside) missing.add(siteId, reason, rows);
    for (const { siteId } of refused) missing.add(siteId, 'refused', 1);
    for (const { siteId } of tooOld) missing.add(siteId, 'too_old', 1);
    await noteLosses(client, batch, known);
    await missing.write(client, batch.nodeId);
    await client.query('commit');
    const strange = young.length - own.length;
    return {
      stored,
      doubles: own.length - stored - refused.length,
      refused: refused.length + strange,
      tooOld: tooOld.length,
    };
  }

  /** First moment that rows are kept from. */
  async #keepFrom(client: PoolClient): Promise<number> {
    const now = this.#now();
    if (now >= this.#keep.until) {
      const { rows } = await client.query<{ value: { retentionDays?: number } }>(
        `select value from setting where key = 'logs'`,
      );
      const days = rows[0]?.value.retentionDays ?? DEFAULT_LOG_SETTINGS.retentionDays;
      this.#keep = { from: dayOf(now) - (days - 1) * DAY_MS, until: now + KEPT_MS };
    }
    return this.#keep.from;
  }

  async #makeDays(client: PoolClient, rows: readonly LogRow[]): Promise<void> {
    for (const day of new Set(rows.map(({ at }) => dayOf(at)))) {
      if (this.#days.has(day)) continue;
      await client.query('select log_day($1::date)', [new Date(day).toISOString().slice(0, 10)]);
      this.#days.add(day);
    }
  }
}

/** Sites of the cluster that there are: rows of others belong nowhere. */
async function sitesOf(client: PoolClient, { clusterId, rows, aside, losses }: LogBatch): Promise<Set<string>> {
  const ids = [...new Set([...rows, ...aside, ...losses].map(({ siteId }) => siteId))];
  const found = await client.query<{ id: string }>('select id from site where cluster_id = $1 and id = any($2)', [
    clusterId,
    ids,
  ]);
  return new Set(found.rows.map(({ id }) => id));
}

/** Rows that the database does not take are found by halves, so that they cost the others little. */
async function insert(client: PoolClient, rows: readonly LogRow[]): Promise<{ stored: number; refused: LogRow[] }> {
  if (rows.length === 0) return { stored: 0, refused: [] };
  await client.query('savepoint rows');
  try {
    await client.query('create temporary table if not exists log_batch (like request_log) on commit delete rows');
    await client.query('truncate log_batch');
    await copyIn(client, 'log_batch', LOG_COLUMNS, rows.map(logFields));
    const { rowCount } = await client.query(
      `insert into request_log (${LOG_COLUMNS.join()}) select ${LOG_COLUMNS.join()} from log_batch on conflict do nothing`,
    );
    await client.query('release savepoint rows');
    return { stored: rowCount ?? 0, refused: [] };
  } catch (error) {
    const { code = '' } = error as { code?: string };
    // 23514 without a constraint of a row: there is no day for it, which is about all of them.
    if (!ABOUT_A_ROW.test(code) || code === '23514') throw error;
    await client.query('rollback to savepoint rows');
    if (rows.length === 1) return { stored: 0, refused: [...rows] };
    const half = rows.length >> 1;
    const first = await insert(client, rows.slice(0, half));
    const second = await insert(client, rows.slice(half));
    return { stored: first.stored + second.stored, refused: [...first.refused, ...second.refused] };
  }
}

/** A row as COPY takes it. */
export function logFields(row: LogRow): (string | number | boolean | null)[] {
  return [
    ...[
      row.siteId,
      hashOf(row.siteId),
      new Date(row.at).toISOString(),
      row.id,
      row.nodeId,
      row.clientIp,
      row.method,
      row.host,
      row.path,
    ],
    ...[row.status, row.bytesSent, row.requestBytes, row.durationMs, row.sampleRate, row.requestId],
    ...[
      row.requestId === null ? null : hashOf(row.requestId),
      row.cacheStatus,
      row.ja4,
      row.wafRuleIds.join(' ') || null,
      row.wafBlocked,
    ],
    ...[row.userAgent, row.referer, row.ruleIds.join(' ') || null, row.peerIp, row.httpVersion, row.secure],
    ...[row.country, row.asn, row.asName, row.upstream, row.upstreamStatus, row.upstreamMs, row.contentType],
    ...[row.tlsVersion, row.blockReason, row.blockRuleId, row.query],
    ...[row.headers.length > 0 ? JSON.stringify(row.headers) : null, row.errorCode],
  ];
}

/** As it is stored: 32 bits with a sign. */
export function hashOf(text: string): number {
  return crc32(text) | 0;
}

/** Sums what is missing by site and reason; rows of sites that are not of the cluster are missing nowhere. */
class Missing {
  readonly #known: ReadonlySet<string>;
  readonly #sums = new Map<string, { siteId: string; reason: MissingReason; rows: number }>();

  constructor(known: ReadonlySet<string>) {
    this.#known = known;
  }

  add(siteId: string, reason: MissingReason, rows: number): void {
    if (!this.#known.has(siteId)) return;
    const key = `${reason} ${siteId}`;
    const sum = this.#sums.get(key) ?? { siteId, reason, rows: 0 };
    sum.rows += rows;
    this.#sums.set(key, sum);
  }

  async write(client: PoolClient, nodeId: string): Promise<void> {
    const sums = [...this.#sums.values()];
    if (sums.length === 0) return;
    await client.query(
      `insert into request_log_missing as m (site_id, hour, node_id, reason, rows)
       select s, date_trunc('hour', now()), $1, r, n from unnest($2::text[], $3::text[], $4::bigint[]) g (s, r, n)
       on conflict (site_id, hour, node_id, reason) do update set rows = m.rows + excluded.rows`,
      [nodeId, sums.map(({ siteId }) => siteId), sums.map(({ reason }) => reason), sums.map(({ rows }) => rows)],
    );
  }
}

/** Losses are sums since the ring was made: saying one twice counts once. */
async function noteLosses(client: PoolClient, batch: LogBatch, known: ReadonlySet<string>): Promise<void> {
  // '' is sites that the node had no room to count apart.
  const losses = batch.losses.filter(({ siteId }) => siteId === '' || known.has(siteId));
  if (losses.length === 0) return;
  const values = [batch.nodeId, batch.ring, losses.map(({ siteId }) => siteId), losses.map(({ rows }) => rows)];
  await client.query(
    `with given as (select * from unnest($3::text[], $4::bigint[]) g (site_id, rows)),
       before as (
         select l.site_id, l.rows from request_log_loss l join given g using (site_id)
          where l.node_id = $1 and l.ring = $2 for update of l),
       saved as (
         insert into request_log_loss as l (node_id, ring, site_id, rows, updated_at)
         select $1, $2, site_id, rows, now() from given
         on conflict (node_id, ring, site_id) do update
           set rows = greatest(l.rows, excluded.rows), updated_at = excluded.updated_at)
     insert into request_log_missing as m (site_id, hour, node_id, reason, rows)
     select g.site_id, date_trunc('hour', now()), $1, 'no_room', g.rows - coalesce(b.rows, 0)
       from given g left join before b using (site_id) where g.rows > coalesce(b.rows, 0)
     on conflict (site_id, hour, node_id, reason) do update set rows = m.rows + excluded.rows`,
    values,
  );
}
