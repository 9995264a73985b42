// Whether nodes store the response to a request, for how long, and what decides: the same decision as that of the edge, with
// its reasons. test/vectors/cache-decisions.json holds both to it.
import type { Condition } from '../../../contract/expression/tree.ts';
import type { CacheExplanation, CacheReason, RESPONSE_RESULTS } from '../../../contract/resources/cache-explain.ts';
import type { CacheRule } from '../../../contract/resources/site-cache.ts';
import { bytesOf } from '../evaluate/bytes.ts';
import { evaluateCondition } from '../evaluate/evaluate.ts';
import { Exchange } from '../run/exchange.ts';
import type { RunRequest, RunSurroundings } from '../run/request.ts';
import { MAX_COST } from '../run/run.ts';
import { TooCostly, UnknownValue } from '../run/unknown.ts';
import { linesOf, membersOf } from './header-lines.ts';
import { judge, type OriginResponse } from './judge.ts';
import { type CacheKeySettings, type KeyPart, keyOf } from './key.ts';
import { pastCache } from './plain.ts';
import { sentTo } from './sent.ts';

export interface AskedCache {
  readonly request: RunRequest;
  readonly response: OriginResponse | null;
  /** By ascending priority; the condition is null where it does not compile any more. */
  readonly rules: readonly { readonly rule: CacheRule; readonly condition: Condition | null }[];
  readonly key: CacheKeySettings;
  /** The name of the rule that has the request go past the cache; null for none. */
  readonly bypassedBy: string | null;
  /** What rules changed of the request to the origin. */
  readonly changed: readonly KeyPart[];
  readonly inList: RunSurroundings['inList'];
  /** In seconds since 1970. */
  readonly now: number;
}

type Decided = Pick<CacheExplanation, 'decision' | 'why' | 'decidedBy' | 'xCache'> & Partial<CacheExplanation>;
type RuleRow = CacheExplanation['rules'][number];

/** Its strings are bytes. Throws nothing, whatever the request is. */
export function decideCache(asked: AskedCache): CacheExplanation {
  const rows: RuleRow[] = asked.rules.map(({ rule: { priority } }) => ({
    priority,
    result: 'not_tried',
    unknown: null,
    response: null,
  }));
  const decided = decide(asked, rows);
  const unknown = rows.flatMap((row) => (row.unknown === null ? [] : [row.unknown]));
  return { rule: null, key: null, freshness: null, browserTtlSeconds: null, rules: rows, unknown, ...decided };
}

function decide(asked: AskedCache, rows: RuleRow[]): Decided {
  const { request, response, bypassedBy } = asked;
  const past = pastCache(request);
  if (past) return { ...bypassed(past.why), decidedBy: past.decidedBy };
  if (bypassedBy !== null) {
    return { ...bypassed('site_rule'), decidedBy: { part: 'site_rule', name: bypassedBy, value: null } };
  }
  const chain = chainOf(asked, rows);
  if (!Array.isArray(chain)) return chain;
  const authorization = linesOf(request.headers, 'authorization');
  const storing = chain.filter(({ action }) => action === 'cache');
  const [first] = chain;
  if (!first) return { ...bypassed('no_rule'), decidedBy: null };
  if (storing.length === 0) return byRule('bypassed', 'rule_bypasses', first);
  if (authorization && !storing.some(({ cacheAuthorized }) => cacheAuthorized)) {
    return { ...bypassed('authorization'), decidedBy: { part: 'request', name: 'Authorization', value: null } };
  }
  const key = keyOf(request, asked.key);
  if ('ambiguousCookie' in key) {
    return { ...bypassed('cookie'), decidedBy: { part: 'request', name: key.ambiguousCookie, value: null } };
  }
  key.push(...asked.changed);
  if (request.method === 'HEAD') {
    const decidedBy = { part: 'request', name: 'method', value: 'HEAD' } as const;
    return { decision: 'not_stored', why: 'head', decidedBy, xCache: 'BYPASS', key };
  }
  if (!response) {
    return { decision: 'response_needed', why: 'response_needed', decidedBy: null, xCache: null, key };
  }
  return { key, ...ofResponse(asked, response, chain, rows, key) };
}

const bypassed = (why: CacheReason) => ({ decision: 'bypassed', why, xCache: 'BYPASS' }) as const;

function byRule(decision: 'bypassed' | 'not_stored', why: CacheReason, rule: CacheRule): Decided {
  const decidedBy = { part: 'cache_rule', name: 'action', value: 'bypass' } as const;
  return { decision, why, decidedBy, rule: rule.priority, xCache: 'BYPASS' };
}

/** Rules that may decide about the response, up to the first that decides about any; or why that is not known. */
function chainOf({ request, rules, inList }: AskedCache, rows: RuleRow[]): CacheRule[] | Decided {
  const exchange = new Exchange(request);
  let cost = 0;
  const spend = (steps: number) => {
    cost += steps;
    if (cost > MAX_COST) throw new TooCostly();
  };
  const around = { field: exchange.field.bind(exchange), inList, spend };
  const chain: CacheRule[] = [];
  for (const [index, { rule, condition }] of rules.entries()) {
    const row = rows[index]!;
    try {
      const held = condition ? evaluateCondition(condition, around) : ({ ok: false } as const);
      if (!held.ok) {
        row.result = 'failed';
        const decidedBy = { part: 'cache_rule', name: 'expression', value: bytesOf(rule.expression) } as const;
        return { decision: 'ended', why: 'rule_failed', decidedBy, rule: rule.priority, xCache: null };
      }
      row.result = held.value ? 'matched' : 'not_matched';
    } catch (error) {
      row.result = 'unknown';
      if (error instanceof UnknownValue) row.unknown = error.field;
      else if (!(error instanceof TooCostly)) throw error;
      const decidedBy = { part: 'cache_rule', name: 'expression', value: bytesOf(rule.expression) } as const;
      const why = row.unknown === null ? 'too_costly' : 'unknown_field';
      return { decision: 'undecided', why, decidedBy, rule: rule.priority, xCache: null };
    }
    if (row.result === 'matched') {
      chain.push(rule);
      if (!isOfResponse(rule)) break;
    }
  }
  return chain;
}

function isOfResponse({ statusCodes, minSizeBytes, maxSizeBytes }: CacheRule): boolean {
  return statusCodes.length > 0 || minSizeBytes > 0 || maxSizeBytes > 0;
}

function ofResponse(
  { request, now }: AskedCache,
  response: OriginResponse,
  chain: readonly CacheRule[],
  rows: readonly RuleRow[],
  key: KeyPart[],
): Decided {
  const rule = chain.find((each) => {
    const fits = fitsResponse(each, response);
    rows.find(({ priority }) => priority === each.priority)!.response = fits;
    return fits === 'fits';
  });
  if (!rule) {
    return { decision: 'not_stored', why: 'no_rule_for_response', decidedBy: null, xCache: 'BYPASS' };
  }
  if (rule.action === 'bypass') return byRule('not_stored', 'rule_bypasses', rule);
  const { why, decidedBy, freshness, noCache } = judge(request.headers, response, rule, now);
  const told = { why, decidedBy, rule: rule.priority, xCache: 'MISS', freshness } as const;
  // What the origin wants validated before each use is not for browsers to keep either.
  const decides = (why === 'stored' || why === 'no_validator') && !noCache;
  const browserTtlSeconds = decides && rule.browserTtlSeconds > 0 ? rule.browserTtlSeconds : null;
  if (why !== 'stored') return { ...told, decision: 'not_stored', browserTtlSeconds };
  const names = new Set(membersOf(linesOf(response.headers, 'vary') ?? []).map((name) => name.toLowerCase()));
  for (const name of [...names].sort()) key.push({ part: 'vary', name, value: sentTo(request, name) });
  return { ...told, decision: 'stored', browserTtlSeconds };
}

function fitsResponse(
  { statusCodes, minSizeBytes, maxSizeBytes }: CacheRule,
  { status, headers }: OriginResponse,
): (typeof RESPONSE_RESULTS)[number] {
  if (statusCodes.length > 0 && !statusCodes.includes(status === 206 ? 200 : status)) return 'status_differs';
  if (minSizeBytes === 0 && maxSizeBytes === 0) return 'fits';
  const [length = '', ...more] = linesOf(headers, 'content-length') ?? [];
  if (more.length > 0 || !/^[0-9]+$/.test(length)) return 'size_unknown';
  const size = Number(length);
  return size >= minSizeBytes && (maxSizeBytes === 0 || size <= maxSizeBytes) ? 'fits' : 'size_differs';
}
