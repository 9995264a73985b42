// What becomes of the response to a request (RFC 9111, section 3), as nodes judge it by the deciding rule.
import { STATUS_CODES } from 'node:http';
import type { CacheExplanation, CacheReason, FRESHNESS_SOURCES } from '../../../contract/resources/cache-explain.ts';
import type { CacheRule } from '../../../contract/resources/site-cache.ts';
import type { HeaderLine } from '../evaluate/request-values.ts';
import { type Control, governing, MAX_SECONDS, numberOf } from './control.ts';
import { isToken, linesOf, membersOf, trimmed } from './header-lines.ts';
import { dateIn } from './http-date.ts';

type Freshness = NonNullable<CacheExplanation['freshness']>;
type DecidedBy = NonNullable<CacheExplanation['decidedBy']>;

export interface Judged {
  readonly why: CacheReason;
  /** Bytes, not text. */
  readonly decidedBy: DecidedBy | null;
  readonly freshness: Freshness | null;
  /** The origin wants the response validated before each use. */
  readonly noCache: boolean;
}

export interface OriginResponse {
  readonly status: number;
  readonly headers: readonly HeaderLine[];
}

/** A response varies by at most so many fields. */
const MAX_VARY = 16;
const BY_DEFAULT: readonly number[] = [200, 203, 206, 300, 301, 308];
const PARTIAL = 206;

/** `now` is when the response came, in seconds since 1970. */
export function judge(
  requestHeaders: readonly HeaderLine[],
  { status, headers: given }: OriginResponse,
  rule: CacheRule,
  now: number,
): Judged {
  const headers: readonly HeaderLine[] = linesOf(given, 'date')
    ? given
    : [...given, ['date', new Date(now * 1000).toUTCString()]];
  const lines = (name: string) => linesOf(headers, name)?.join(', ') ?? null;
  const by = (why: CacheReason, part: DecidedBy['part'], name: string, value: string | null): Judged => ({
    why,
    decidedBy: { part, name, value },
    freshness: null,
    noCache: false,
  });
  const byStatus = () => by('status', 'response', 'status', String(status));
  if (status < 200 || status === 304 || status === PARTIAL) return byStatus();
  if (variesByAll(headers)) return by('vary', 'response', 'Vary', lines('vary'));
  if (linesOf(headers, 'set-cookie') && !rule.cacheSetCookie) {
    return by('set_cookie', 'cache_rule', 'cacheSetCookie', 'false');
  }
  const authorized = linesOf(requestHeaders, 'authorization') !== null;
  if (authorized && !rule.cacheAuthorized) return by('authorization', 'cache_rule', 'cacheAuthorized', 'false');
  if (rule.statusCodes.length === 0 && !BY_DEFAULT.includes(status)) return byStatus();
  const ageSeconds = initialAge(headers, now);
  if (rule.originCacheControl === 'override') {
    if (rule.edgeTtlSeconds === 0) return by('rule_ttl_zero', 'cache_rule', 'edgeTtlSeconds', '0');
    return {
      why: 'stored',
      decidedBy: { part: 'cache_rule', name: 'originCacheControl', value: 'override' },
      noCache: false,
      freshness: {
        source: 'rule',
        header: null,
        lifetimeSeconds: rule.edgeTtlSeconds,
        ageSeconds,
        validated: false,
        staleWhileRevalidateSeconds: rule.staleWhileRevalidateSeconds,
        staleIfErrorSeconds: rule.staleIfErrorSeconds,
      },
    };
  }
  const { control, header } = governing(headers);
  const { flags, times, written } = control;
  const byDirective = (why: CacheReason, name: string) => by(why, 'response', header, written.get(name) ?? name);
  if (flags.has('must-understand') && !understood(status)) return byStatus();
  if (flags.has('no-store') && !flags.has('must-understand')) return byDirective('no_store', 'no-store');
  if (flags.has('private')) return byDirective('private', 'private');
  if (authorized && !flags.has('public') && !flags.has('must-revalidate') && !times.has('s-maxage')) {
    return by('authorization_response', 'response', header, lines(header.toLowerCase()));
  }
  const found = lifetimeOf(control, header, headers, rule, now);
  if (!found) return by('no_lifetime', 'response', header, lines(header.toLowerCase()));
  const { source, lifetime, decidedBy } = found;
  if (lifetime <= 0 && source === 'rule') return by('rule_ttl_zero', 'cache_rule', 'edgeTtlSeconds', '0');
  const stale = staleTimes(control, rule, lifetime);
  const noCache = flags.has('no-cache');
  const validated = noCache || lifetime <= 0;
  if (
    validated &&
    !hasValidator(headers) &&
    stale.staleWhileRevalidateSeconds === 0 &&
    stale.staleIfErrorSeconds === 0
  ) {
    return { why: 'no_validator', decidedBy, freshness: null, noCache };
  }
  return {
    why: 'stored',
    decidedBy,
    noCache,
    freshness: {
      source,
      header: source === 'rule' ? null : source === 'expires' ? 'Expires' : header,
      lifetimeSeconds: lifetime,
      ageSeconds,
      validated,
      ...stale,
    },
  };
}

interface Lifetime {
  readonly source: (typeof FRESHNESS_SOURCES)[number];
  readonly lifetime: number;
  readonly decidedBy: DecidedBy;
}

/** Null where the origin says how to cache and not for how long. */
function lifetimeOf(
  { flags, times, written, present }: Control,
  header: string,
  headers: readonly HeaderLine[],
  rule: CacheRule,
  now: number,
): Lifetime | null {
  const directive = (source: Lifetime['source'], name: string, lifetime: number): Lifetime => ({
    source,
    lifetime,
    decidedBy: { part: 'response', name: header, value: written.get(name) ?? name },
  });
  const [shared, own] = [times.get('s-maxage'), times.get('max-age')];
  if (shared !== undefined) return directive('s_maxage', 's-maxage', shared);
  if (own !== undefined) return directive('max_age', 'max-age', own);
  const expires = header === 'Cache-Control' ? linesOf(headers, 'expires') : null;
  if (expires) {
    return {
      source: 'expires',
      lifetime: expiresAfter(headers, now),
      decidedBy: { part: 'response', name: 'Expires', value: expires.join(', ') },
    };
  }
  if (flags.has('no-cache')) return directive('no_cache', 'no-cache', 0);
  if (present) return null;
  const decidedBy = { part: 'cache_rule', name: 'edgeTtlSeconds', value: String(rule.edgeTtlSeconds) } as const;
  return { source: 'rule', lifetime: rule.edgeTtlSeconds, decidedBy };
}

/** From Date, or from when the response came; 0 where a date is not valid. */
function expiresAfter(headers: readonly HeaderLine[], now: number): number {
  const until = dateIn(headers, 'expires', now);
  if (until === null) return 0;
  return Math.min(Math.max(until - (dateIn(headers, 'date', now) ?? now), 0), MAX_SECONDS);
}

/** As the origin says, else as the rule says. Directives that forbid stale responses win. */
function staleTimes({ flags, times }: Control, rule: CacheRule, lifetime: number) {
  if (flags.has('must-revalidate') || flags.has('proxy-revalidate') || flags.has('no-cache')) {
    return { staleWhileRevalidateSeconds: 0, staleIfErrorSeconds: 0 };
  }
  const ofRule = !times.has('s-maxage') && lifetime > 0;
  return {
    staleWhileRevalidateSeconds: times.get('stale-while-revalidate') ?? (ofRule ? rule.staleWhileRevalidateSeconds : 0),
    staleIfErrorSeconds: times.get('stale-if-error') ?? (ofRule ? rule.staleIfErrorSeconds : 0),
  };
}

/** The age that the origin names, or the time since its Date, whichever is more. */
function initialAge(headers: readonly HeaderLine[], now: number): number {
  const [line = ''] = linesOf(headers, 'age') ?? [];
  const named = numberOf(trimmed(line.split(',', 1)[0]!)) ?? 0;
  const date = dateIn(headers, 'date', now);
  return Math.min(Math.max(named, date === null ? 0 : now - date), MAX_SECONDS);
}

function variesByAll(headers: readonly HeaderLine[]): boolean {
  const names = membersOf(linesOf(headers, 'vary') ?? []);
  return names.length > MAX_VARY || names.some((name) => name === '*' || !isToken(name));
}

function hasValidator(headers: readonly HeaderLine[]): boolean {
  const [tag = '', ...more] = linesOf(headers, 'etag') ?? [];
  return (
    (more.length === 0 && /^(?:W\/)?"[^"]*"$/.test(trimmed(tag))) || linesOf(headers, 'last-modified')?.length === 1
  );
}

/** Statuses that have a registered name. */
function understood(status: number): boolean {
  return STATUS_CODES[status] !== undefined && status !== 509;
}
