// Filters of request logs, as texts of the address and as procedures take them. Pure.
import { BLOCK_REASONS, CACHE_STATUSES } from '../../../../contract/resources/logs.ts';
import { parseAddress, parseCidr } from '../../../../contract/scalars/cidr.ts';

/** In the order in which somebody adds one. */
export const FILTER_NAMES = [
  ...(['requestId', 'ip', 'cidr', 'path', 'status', 'statusClass', 'method', 'host', 'blockReason'] as const),
  ...(['cacheStatus', 'country', 'asn', 'ua', 'referer', 'minDuration', 'ja4'] as const),
];
export type FilterName = (typeof FILTER_NAMES)[number];
export type Filters = Record<FilterName, string>;

export const NO_FILTERS = Object.fromEntries(FILTER_NAMES.map((name) => [name, ''])) as Filters;

/** Filters whose value is one of a few. */
export const FILTER_CHOICES: Partial<Record<FilterName, readonly string[]>> = {
  statusClass: ['1', '2', '3', '4', '5'],
  blockReason: ['any', ...BLOCK_REASONS],
  cacheStatus: CACHE_STATUSES,
};

const integer = (least: number, most: number) => (text: string) =>
  /^\d{1,10}$/.test(text) && Number(text) >= least && Number(text) <= most;
const textOf = (most: number) => (text: string) => text !== '' && [...text].length <= most;
const oneOf = (name: FilterName) => (text: string) => FILTER_CHOICES[name]!.includes(text);

const RULES: Record<FilterName, (text: string) => boolean> = {
  requestId: textOf(128),
  ip: (text) => parseAddress(text) !== null,
  cidr: (text) => parseCidr(text) !== null,
  path: textOf(2048),
  status: integer(100, 599),
  statusClass: oneOf('statusClass'),
  method: textOf(32),
  host: textOf(253),
  blockReason: oneOf('blockReason'),
  cacheStatus: oneOf('cacheStatus'),
  country: (text) => /^[A-Z]{2}$/.test(text),
  asn: integer(1, 4_294_967_295),
  ua: textOf(256),
  referer: textOf(256),
  minDuration: integer(0, 86_400_000),
  ja4: textOf(36),
};
const NUMBERS: readonly FilterName[] = ['status', 'statusClass', 'asn', 'minDuration'];

/** Whether procedures take the value. */
export function takesFilter(name: FilterName, text: string): boolean {
  return RULES[name](text);
}

/** A value as somebody types it, in the form that procedures take. */
export function filterOf(name: FilterName, text: string): string {
  const trimmed = text.trim();
  return name === 'country' || name === 'method' ? trimmed.toUpperCase() : trimmed;
}

/** Filters that are set, in their order. A value that no procedure takes, as of an old link, is none. */
export function setFilters(filters: Filters): { name: FilterName; value: string }[] {
  return FILTER_NAMES.map((name) => ({ name, value: filters[name] })).filter(
    ({ name, value }) => value !== '' && takesFilter(name, value),
  );
}

export function filterInput(filters: Filters): Partial<Record<FilterName, string | number>> {
  return Object.fromEntries(
    setFilters(filters).map(({ name, value }) => [name, NUMBERS.includes(name) ? Number(value) : value]),
  );
}
