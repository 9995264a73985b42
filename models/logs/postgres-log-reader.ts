// Rows of request logs as PostgreSQL has them.
import type { Knex } from 'knex';
import type { LOG_TOP_FIELDS } from '../../contract/resources/logs.ts';
import { searchPattern } from '../db/search-pattern.ts';
import {
  type LogBucket,
  type LogFilterFields,
  type LogPlace,
  type LogReader,
  type LogSearch,
  LogSearchTooLarge,
  type LogTop,
} from './log-reader.ts';
import type { LogRow } from './log-row.ts';
import { hashOf } from './postgres-log-writer.ts';

const CANCELED = '57014';
const PAGE_SECONDS = 5;
const COUNT_SECONDS = 10;
const MAX_SAMPLE = 10_000;

const SELECT = `site_id as "siteId", round(extract(epoch from at) * 1000)::float8 as at, id, node_id as "nodeId",
  host(client_ip) as "clientIp", method, host, path, status, bytes_sent::float8 as "bytesSent",
  request_bytes::float8 as "requestBytes", duration_ms as "durationMs", sample_rate as "sampleRate",
  request_id as "requestId", cache_status as "cacheStatus", ja4, waf_rule_ids as "wafRuleIds",
  waf_blocked as "wafBlocked", user_agent as "userAgent", referer, rule_ids as "ruleIds", host(peer_ip) as "peerIp",
  http_version as "httpVersion", secure, country, asn::float8 as asn, as_name as "asName", upstream,
  upstream_status as "upstreamStatus", upstream_ms as "upstreamMs", content_type as "contentType",
  tls_version as "tlsVersion", block_reason as "blockReason", block_rule_id as "blockRuleId", query, headers,
  error_code as "errorCode"`;

const TOP: Readonly<Record<(typeof LOG_TOP_FIELDS)[number], string>> = {
  path: 'path',
  host: 'host',
  clientIp: 'host(client_ip)',
  status: 'status::text',
  method: 'method',
  cacheStatus: 'cache_status',
  country: 'country',
  asn: 'asn::text',
  userAgent: 'user_agent',
  referer: 'referer',
  blockReason: 'block_reason',
  upstream: 'upstream',
  errorCode: 'error_code',
};

type Stored = Omit<LogRow, 'wafRuleIds' | 'ruleIds' | 'headers'> & {
  wafRuleIds: string | null;
  ruleIds: string | null;
  headers: string | null;
};
type Binding = string | number | Date;

export class PostgresLogReader implements LogReader {
  readonly #sql: Knex;

  constructor(sql: Knex) {
    this.#sql = sql;
  }

  async page(search: LogSearch, after: LogPlace | null, limit: number): Promise<LogRow[]> {
    const { where, values } = conditions(search);
    const place = after ? ' and (at, id) < (?::timestamptz, ?::uuid)' : '';
    const placed = after ? [new Date(after.at), after.id] : [];
    const rows = await this.#bounded<Stored>(
      PAGE_SECONDS,
      // Without the table's name it would be the milliseconds, which no index has.
      `select ${SELECT} from request_log r where ${where}${place} order by r.at desc, r.id desc limit ?`,
      [...values, ...placed, limit],
    );
    return rows.map(({ wafRuleIds, ruleIds, headers, ...row }) => ({
      ...row,
      wafRuleIds: wafRuleIds === null ? [] : wafRuleIds.split(' ').map(Number),
      ruleIds: ruleIds === null ? [] : ruleIds.split(' '),
      headers: headers === null ? [] : (JSON.parse(headers) as LogRow['headers']),
    }));
  }

  histogram(search: LogSearch, bucketMs: number): Promise<LogBucket[]> {
    const { where, values } = conditions(search);
    const seconds = bucketMs / 1000;
    return this.#bounded<LogBucket>(
      COUNT_SECONDS,
      `select floor(extract(epoch from at) / ?)::float8 * ? as start, count(*)::float8 as rows,
         ${sum()} as requests, ${sum('status between 400 and 499')} as "clientErrors",
         ${sum('status between 500 and 599')} as "serverErrors", ${sum('block_reason is not null')} as blocked,
         min(sample_rate) < ${MAX_SAMPLE} as sampled
       from request_log where ${where} group by 1 order by 1`,
      [seconds, bucketMs, ...values],
    );
  }

  top(search: LogSearch, field: keyof typeof TOP, limit: number): Promise<LogTop[]> {
    const { where, values } = conditions(search);
    return this.#bounded<LogTop>(
      COUNT_SECONDS,
      `select ${TOP[field]} as value, count(*)::float8 as rows, ${sum()} as requests,
         min(sample_rate) < ${MAX_SAMPLE} as sampled
       from request_log where ${where} group by 1 order by 3 desc, 1 limit ?`,
      [...values, limit],
    );
  }

  async missing({ siteId, from, to }: Omit<LogSearch, 'filter'>): Promise<number> {
    const { rows } = await this.#sql.raw<{ rows: { total: number }[] }>(
      `select coalesce(sum(rows), 0)::float8 as total from request_log_missing
        where site_id = ? and hour >= date_trunc('hour', ?::timestamptz) and hour < ?`,
      [siteId, new Date(from), new Date(to)],
    );
    return rows[0]!.total;
  }

  async #bounded<R>(seconds: number, text: string, values: Binding[]): Promise<R[]> {
    try {
      return await this.#sql.transaction(
        async (trx) => {
          await trx.raw(`set local statement_timeout = '${seconds}s'`);
          const { rows } = await trx.raw<{ rows: R[] }>(text, values);
          return rows;
        },
        { readOnly: true },
      );
    } catch (error) {
      if ((error as { code?: string }).code !== CANCELED) throw error;
      throw new LogSearchTooLarge(seconds, error);
    }
  }
}

/** Requests that rows stand for. */
function sum(condition?: string): string {
  const filter = condition === undefined ? '' : ` filter (where ${condition})`;
  return `coalesce(round(sum(${MAX_SAMPLE}::numeric / sample_rate)${filter}), 0)::float8`;
}

function conditions({ siteId, from, to, filter }: LogSearch): { where: string; values: Binding[] } {
  const parts = ['site_hash = ? and site_id = ? and at >= ? and at < ?'];
  const values: Binding[] = [hashOf(siteId), siteId, new Date(from), new Date(to)];
  const add = (text: string, ...given: Binding[]): void => {
    parts.push(text);
    values.push(...given);
  };
  for (const [name, condition] of Object.entries(CONDITIONS)) {
    const value = filter[name as keyof LogFilterFields];
    if (value !== undefined) condition(add, value as never);
  }
  return { where: parts.join(' and '), values };
}

type Add = (text: string, ...values: Binding[]) => void;
type Conditions = {
  [K in keyof Required<LogFilterFields>]: (add: Add, value: NonNullable<LogFilterFields[K]>) => void;
};

const CONDITIONS: Conditions = {
  status: (add, value) => add('status = ?', value),
  statusClass: (add, value) => add('status between ? and ?', value * 100, value * 100 + 99),
  ip: (add, value) => add('client_ip = ?::inet', value),
  cidr: (add, value) => add('client_ip <<= ?::inet', value),
  method: (add, value) => add('method = ?', value),
  host: (add, value) => add('host = ?', value.toLowerCase()),
  path: (add, value) => add('starts_with(path, ?)', value),
  requestId: (add, value) => add('request_hash = ? and request_id = ?', hashOf(value), value),
  cacheStatus: (add, value) => add('cache_status = ?', value),
  blockReason: (add, value) => (value === 'any' ? add('block_reason is not null') : add('block_reason = ?', value)),
  country: (add, value) => add('country = ?', value),
  asn: (add, value) => add('asn = ?', value),
  ua: (add, value) => add('user_agent ilike ?', searchPattern(value)),
  referer: (add, value) => add('referer ilike ?', searchPattern(value)),
  minDuration: (add, value) => add('duration_ms >= ?', value),
  ja4: (add, value) => add('ja4 = ?', value),
};
