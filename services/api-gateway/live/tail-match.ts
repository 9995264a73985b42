// Whether a row is what a tail looks for: what a search over stored rows would say. Pure.
import type { TailFilter } from '../../../contract/resources/log-tail.ts';
import type { LogEntry } from '../../../contract/resources/logs.ts';
import { contains, parseAddress, parseCidr } from '../../../contract/scalars/cidr.ts';

/** `filter` is one that was checked. */
export function tailMatch(filter: TailFilter): (entry: LogEntry) => boolean {
  const tests = Object.entries(TESTS).flatMap(([name, test]) => {
    const value = filter[name as keyof TailFilter];
    return value === undefined ? [] : [(test as (value: unknown) => (entry: LogEntry) => boolean)(value)];
  });
  return (entry) => tests.every((test) => test(entry));
}

type Tests = {
  [K in keyof Required<TailFilter>]: (value: NonNullable<TailFilter[K]>) => (entry: LogEntry) => boolean;
};

const TESTS: Tests = {
  status: (value) => (entry) => entry.status === value,
  statusClass: (value) => (entry) => Math.floor(entry.status / 100) === value,
  ip: within,
  cidr: within,
  method: (value) => (entry) => entry.method === value,
  host: (value) => (entry) => entry.host === value.toLowerCase(),
  path: (value) => (entry) => entry.path.startsWith(value),
  requestId: (value) => (entry) => entry.requestId === value,
  cacheStatus: (value) => (entry) => entry.cacheStatus === value,
  blockReason: (value) => (entry) => (value === 'any' ? entry.blockReason !== null : entry.blockReason === value),
  country: (value) => (entry) => entry.country === value,
  asn: (value) => (entry) => entry.asn === value,
  ua: (value) => has(value, 'userAgent'),
  referer: (value) => has(value, 'referer'),
  minDuration: (value) => (entry) => entry.durationMs >= value,
  ja4: (value) => (entry) => entry.ja4 === value,
};

function within(text: string): (entry: LogEntry) => boolean {
  const outer = parseAddress(text) ?? parseCidr(text);
  return ({ clientIp }) => {
    const inner = clientIp === null ? null : parseAddress(clientIp);
    return outer !== null && inner !== null && contains(outer, inner);
  };
}

function has(value: string, field: 'userAgent' | 'referer'): (entry: LogEntry) => boolean {
  const part = value.trim().toLowerCase();
  return (entry) => entry[field]?.toLowerCase().includes(part) ?? false;
}
