// Where rows of request logs are read. test/helpers/log-store-suite.ts says what every store does: rows are in the order of
// (time, id), latest first; a field that a request did not have is null, is found by no filter and is one value of `top`.
import type { LOG_TOP_FIELDS } from '../../contract/resources/logs.ts';
import type { LogRow } from './log-row.ts';

export interface LogFilterFields {
  status?: number;
  statusClass?: number;
  ip?: string;
  cidr?: string;
  method?: string;
  host?: string;
  path?: string;
  requestId?: string;
  cacheStatus?: string;
  blockReason?: string;
  country?: string;
  asn?: number;
  ua?: string;
  referer?: string;
  minDuration?: number;
  ja4?: string;
}

export interface LogSearch {
  siteId: string;
  /** Milliseconds; `to` is exclusive. */
  from: number;
  to: number;
  filter: LogFilterFields;
}

/** Of the last row of a page. */
export interface LogPlace {
  at: number;
  id: string;
}

export interface LogBucket {
  /** Milliseconds. */
  start: number;
  rows: number;
  requests: number;
  clientErrors: number;
  serverErrors: number;
  blocked: number;
  sampled: boolean;
}

export interface LogTop {
  value: string | null;
  rows: number;
  requests: number;
  sampled: boolean;
}

/** A search that did not end in time. */
export class LogSearchTooLarge extends Error {
  readonly seconds: number;

  constructor(seconds: number, cause: unknown) {
    super(`the search did not end within ${seconds} s`, { cause });
    this.seconds = seconds;
  }
}

/** Each call throws LogSearchTooLarge where it does not end in time. */
export interface LogReader {
  page(search: LogSearch, after: LogPlace | null, limit: number): Promise<LogRow[]>;
  histogram(search: LogSearch, bucketMs: number): Promise<LogBucket[]>;
  top(search: LogSearch, field: (typeof LOG_TOP_FIELDS)[number], limit: number): Promise<LogTop[]>;
  /** Rows of the site that are missing, of the hours of the range. */
  missing(search: Omit<LogSearch, 'filter'>): Promise<number>;
}
