// A node's report about attacks, bounded and in the contract's shape. Nodes are authenticated, not trusted: too many of
// something is refused, texts are cut, and what makes no sense by itself is left out.
import { Code, ConnectError } from '@connectrpc/connect';
import { formatCidr, parseCidr } from '../../contract/scalars/cidr.ts';
import { WAF_PARTS } from '../../contract/waf-rule-set.ts';
import {
  MAX_WAF_MATCHES,
  MAX_WAF_RULES,
  type ReportedEvent,
  type ReportedHeavy,
  type ReportedSite,
  type ReportedWaf,
  type SecurityReport,
} from '../../models/security/security-report.ts';
import {
  type Heavy,
  type ReportSecurityRequest,
  type SecurityEvent,
  SecurityEventKind,
  type SiteSecurity,
  type WafMatched,
} from '../../proto/gen/svc/node/v1/security_pb.js';
import { text } from './heartbeat.ts';

const MAX_EVENTS = 500;
const MAX_SITES = 2000;
const MAX_PATHS = 64;
const MAX_HEAVY = 10;
const MAX_LEVEL = 4;
const PATH_CHARS = 2048;
const ADDRESS_CHARS = 64;
const MAX_SCORE = 1_000_000;
const WAF_NAME_CHARS = 256;
const WAF_VALUE_CHARS = 64;
const MAX_SEEN = 1_000_000;
/** Sums of many stay exact numbers. */
const MAX_COUNT = 2n ** 32n;
const EVENT_ID = /^[A-Za-z0-9_-]{1,80}$/;
const SITE_ID = /^[A-Za-z0-9_-]{1,64}$/;
/** Events ahead of the console's clock happened now; older ones than any retention are not kept. */
const OLDEST_MS = 365 * 86_400_000;

const KINDS: Partial<Record<SecurityEventKind, string>> = {
  [SecurityEventKind.SITE_LEVEL]: 'site_level',
  [SecurityEventKind.PATH_LEVEL]: 'path_level',
  [SecurityEventKind.IP_BANNED]: 'ip_banned',
  [SecurityEventKind.WAF_MATCHED]: 'waf_matched',
};

/** Throws invalid_argument for a report beyond its limits. `keptMs`: how long events are kept. */
export function readSecurityReport(request: ReportSecurityRequest, now: Date, keptMs = OLDEST_MS): SecurityReport {
  if (request.events.length > MAX_EVENTS) {
    throw new ConnectError(`a report contains at most ${MAX_EVENTS} events`, Code.InvalidArgument);
  }
  if (request.sites.length > MAX_SITES) {
    throw new ConnectError(`a report contains at most ${MAX_SITES} sites`, Code.InvalidArgument);
  }
  return {
    events: request.events.flatMap((event) => readEvent(event, now, keptMs)),
    sites: request.hasState ? request.sites.flatMap(readSite) : null,
    dropped: request.dropped < 2n ** 63n ? request.dropped : 0n,
  };
}

function readEvent(event: SecurityEvent, now: Date, keptMs: number): ReportedEvent[] {
  const kind = KINDS[event.kind];
  const occurredAt = Math.min(Number(event.occurredAtMs), now.getTime());
  const known = kind !== undefined && EVENT_ID.test(event.id) && SITE_ID.test(event.siteId);
  if (!known || event.level > MAX_LEVEL || event.previousLevel > MAX_LEVEL) return [];
  if (occurredAt < now.getTime() - keptMs) return [];
  const waf = kind === 'waf_matched' ? readWaf(event.waf) : null;
  if (kind === 'waf_matched' && waf === null) return [];
  return [
    {
      id: event.id,
      siteId: event.siteId,
      occurredAt: new Date(occurredAt),
      kind,
      level: event.level,
      previousLevel: event.previousLevel,
      path: kind === 'path_level' ? text(event.path, PATH_CHARS) : null,
      address: kind === 'ip_banned' ? clientOf(event.address) : null,
      metric: text(event.metric, 64) || null,
      observed: finite(event.observed),
      threshold: finite(event.threshold),
      topIps: heavy(event.topIps, ADDRESS_CHARS),
      topPaths: heavy(event.topPaths, PATH_CHARS),
      waf,
    },
  ];
}

/** null: it names no rule. */
function readWaf(waf: WafMatched | undefined): ReportedWaf | null {
  const rules = waf?.rules.slice(0, MAX_WAF_RULES).filter(isRule) ?? [];
  if (!waf || rules.length === 0) return null;
  const counts = waf.matchesSeen > 0;
  const matches = waf.matches
    .slice(0, MAX_WAF_MATCHES)
    .filter(({ rule, part }) => isRule(rule) && Object.hasOwn(WAF_PARTS, part));
  return {
    requestId: text(waf.requestId, 128),
    method: text(waf.method, 64),
    path: text(waf.path, PATH_CHARS),
    address: clientOf(waf.address),
    rules,
    score: Math.min(waf.score, MAX_SCORE),
    threshold: Math.min(waf.threshold, MAX_SCORE),
    blocked: waf.blocked,
    matches: matches.map(({ rule, part, name, value, points }) => ({
      rule,
      part,
      name: text(name, WAF_NAME_CHARS),
      ...(value === '' ? {} : { value: text(value, WAF_VALUE_CHARS) }),
      ...(counts ? { points: Math.min(points, MAX_SCORE) } : {}),
    })),
    ...(counts
      ? {
          rulesSeen: Math.max(Math.min(waf.rulesSeen, MAX_SEEN), rules.length),
          matchesSeen: Math.max(Math.min(waf.matchesSeen, MAX_SEEN), matches.length),
        }
      : {}),
  };
}

const isRule = (rule: number) => rule >= 900_000 && rule <= 999_999;

function readSite({ siteId, level, paths }: SiteSecurity): ReportedSite[] {
  if (!SITE_ID.test(siteId) || level > MAX_LEVEL) return [];
  const escalated = paths
    .slice(0, MAX_PATHS)
    .filter((path) => path.level > 0 && path.level <= MAX_LEVEL)
    .map((path) => ({ path: text(path.path, PATH_CHARS), level: path.level }));
  return level === 0 && escalated.length === 0 ? [] : [{ siteId, level, paths: escalated }];
}

/** A client as bans write it, without the length that says it is a single one. */
function clientOf(value: string): string | null {
  const cidr = parseCidr(value);
  return cidr ? formatCidr(cidr).replace(/\/(32|128)$/, '') : null;
}

function heavy(list: readonly Heavy[], maxChars: number): ReportedHeavy[] {
  return list.slice(0, MAX_HEAVY).map(({ value, count }) => ({
    value: text(value, maxChars),
    count: Number(count < MAX_COUNT ? count : MAX_COUNT),
  }));
}

function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}
