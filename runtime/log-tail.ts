// What processes of the console tell each other while requests of a site are watched as they end: gateways say what is watched,
// processes of the node channel pass on what nodes report. Nothing is stored; a watch that is not renewed ends.
import type { TailFilter } from '../contract/resources/log-tail.ts';
import type { LogEntry } from '../contract/resources/logs.ts';
import type { Runtime } from './runtime.ts';

export interface TailWatch {
  siteId: string;
  clusterId: string;
  /** A request is wanted that matches any of them; none: every request. */
  filters: TailFilter[];
}

/** Everything that one process watches. It takes the place of what it watched before. */
export interface TailLease {
  process: string;
  seconds: number;
  watches: TailWatch[];
}

/** Requests of a site. */
export interface TailRows {
  entries: LogEntry[];
  /** Matching requests that are missing before these. */
  dropped: number;
}

/** Watches that a process of the node channel passes on at most. */
export const MAX_WATCHES = 64;
export const MAX_FILTERS = 16;

export function tailLeasesChannel({ env }: Pick<Runtime, 'env'>): string {
  return `${env.redisPrefix}svc:log-tail:leases`;
}

export function tailRowsChannel({ env }: Pick<Runtime, 'env'>, siteId: string): string {
  return `${env.redisPrefix}svc:log-tail:rows:${siteId}`;
}
