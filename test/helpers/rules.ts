// Rules for tests: what a client sends, and what the console makes of it.
import type { Rule } from '../../contract/scalars/rule.ts';
import type { ActionKind, RuleAction } from '../../contract/scalars/rule-action.ts';
import { ACTION_PHASES } from '../../contract/scalars/rule-action.ts';
import type { Body } from './resources.ts';

/** One action of each kind as short as it goes, with what is filled in. */
const QUERY = { setQuery: [], removeQuery: [] };
export const ACTIONS: { readonly [K in ActionKind]: RuleAction & { kind: K } } = {
  block: { kind: 'block', statusCode: 403 },
  log: { kind: 'log' },
  allow: { kind: 'allow' },
  challenge: { kind: 'challenge', type: 'js' },
  redirect: { kind: 'redirect', value: '/to', target: '', preserveQuery: false, ...QUERY, statusCode: 301 },
  rewrite: { kind: 'rewrite', value: '/to', target: '', preserveQuery: true, ...QUERY },
  request_header: { kind: 'request_header', header: 'x-a', value: 'b', expression: '', remove: false },
  response_header: { kind: 'response_header', header: 'x-a', value: 'b', expression: '', remove: false, append: false },
  config: { kind: 'config', cacheBypass: true },
  rate_limit: { kind: 'rate_limit', limit: 10, windowSeconds: 60, key: 'ip.src', statusCode: 429 },
  origin: { kind: 'origin', originGroup: '', hostHeader: 'origin.example', sni: '', port: 0 },
  compression: { kind: 'compression', algorithms: ['zstd', 'gzip'] },
};

/** An enabled rule with the action, in the first phase where it can stand. */
export function ruleWith(action: RuleAction, more: Partial<Rule> = {}): Rule {
  const phase = ACTION_PHASES[action.kind][0]!;
  return { id: 'rule', name: 'Rule', phase, expression: 'true', enabled: true, action, ...more };
}

/** The largest rule that there can be: every expression as long as it may be, each with as much in it as it may have. */
export function largestRule(index: number): Body {
  const name = `Largest ${index}`.padEnd(100, '.');
  const set = Array.from({ length: 16 }, (_, place) => ({
    name: `p${place}`.padEnd(64, 'x'),
    expression: longest('http.request.uri.query', place),
  }));
  const removeQuery = Array.from({ length: 16 }, (_, place) => `r${place}`.padEnd(64, 'x'));
  const target = longest('http.request.uri.path', index);
  const action = { kind: 'redirect', target, setQuery: set, removeQuery };
  return { name, phase: 'redirect', expression: condition(index), enabled: true, action };
}

const MAX = 4096;

function longest(field: string, number: number): string {
  const start = `concat(${field}, "${number}`;
  return `${start}${'y'.repeat(MAX - start.length - 2)}")`;
}

function condition(number: number): string {
  const start = `http.request.uri.path contains "${number}`;
  return `${start}${'z'.repeat(MAX - start.length - 1)}"`;
}
