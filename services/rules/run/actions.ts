// What each kind of action does to an exchange.
import type { ValueUse } from '../../../contract/expression/results.ts';
import { type ChallengeType, LEVELS } from '../../../contract/scalars/challenge.ts';
import { countedAddress, formatAddress } from '../../../contract/scalars/cidr.ts';
import type { Effect, RuleOfRun } from '../../../contract/scalars/rule-trace.ts';
import type { Bytes } from '../evaluate/bytes.ts';
import { EvaluationFailure } from '../evaluate/failure.ts';
import type { Exchange } from './exchange.ts';
import { isExemption, mayExempt } from './exemption.ts';
import { changedQuery, redirectTarget, type SetParameter } from './query-edit.ts';
import type { RunAction, RunRule, RunTarget, RunValue } from './rule.ts';
import { shown } from './shown.ts';

/** Computes a value of an action for its use. Throws EvaluationFailure and UnknownValue. */
export type Compute = (value: RunValue, use: ValueUse) => Bytes;

type ActionOf<K extends RunAction['kind']> = Extract<RunAction, { kind: K }>;

export const effect = (kind: Effect['kind'], name = '', value: Bytes | number | boolean | null = null): Effect => ({
  kind,
  name,
  value: value === null ? null : shown(value),
});

export const nameOf = ({ id, name, position, platform }: RunRule): RuleOfRun => ({ id, name, position, platform });

/**
 * Does what a rule that matched says. Throws what `compute` throws, but for values of headers that fail.
 */
export function act(
  exchange: Exchange,
  rule: RunRule,
  { condition, action }: NonNullable<RunRule['compiled']>,
  compute: Compute,
): Effect[] {
  switch (action.kind) {
    case 'block':
      exchange.decision = { kind: 'block', status: action.statusCode, error: 'policy-denied', rule: nameOf(rule) };
      return [effect('blocked', '', action.statusCode)];
    case 'log':
      return [effect('logged')];
    case 'allow':
      if (!mayExempt(exchange, condition)) return [effect('exemption_left')];
      exchange.exempt = true;
      return [effect('allowed')];
    case 'challenge':
      return challenge(exchange, rule, action);
    case 'redirect':
      return redirect(exchange, rule, action, compute);
    case 'rewrite':
      return rewrite(exchange, action, compute);
    case 'request_header':
    case 'response_header':
      return editHeader(exchange, action, compute);
    case 'config':
      return override(exchange, rule, action, mayExempt(exchange, condition));
    case 'rate_limit':
      return count(exchange, rule, action);
    case 'origin':
      return chooseOrigin(exchange, action);
    case 'compression':
      exchange.codings = action.algorithms;
      return [effect('codings', '', action.algorithms.join(', '))];
  }
}

/** A pass of the highest level that was asked for so far lets the request go on. */
function challenge(exchange: Exchange, rule: RunRule, { type }: ActionOf<'challenge'>): Effect[] {
  const highest = LEVELS[Math.max(LEVELS.indexOf(exchange.level), LEVELS.indexOf(type))] as ChallengeType;
  exchange.level = highest;
  if (LEVELS.indexOf(exchange.request.passLevel) < LEVELS.indexOf(highest)) {
    const status = highest === 'cookie302' ? 302 : 403;
    exchange.decision = { kind: 'challenge', status, error: null, challenge: highest, rule: nameOf(rule) };
  }
  return [effect('challenged', '', type)];
}

function parameters({ setQuery }: RunTarget, compute: Compute): SetParameter[] {
  return setQuery.map(({ name, value }) => ({ name, value: compute(value, 'query') }));
}

function redirect(exchange: Exchange, rule: RunRule, action: ActionOf<'redirect'>, compute: Compute): Effect[] {
  const target = compute(action.target, 'redirect');
  const change = { set: parameters(action, compute), remove: action.removeQuery };
  const location = redirectTarget(target, action.preserveQuery ? exchange.query : '', change);
  exchange.decision = { kind: 'redirect', status: action.statusCode, error: null, location, rule: nameOf(rule) };
  return [effect('redirected', '', location)];
}

function rewrite(exchange: Exchange, action: ActionOf<'rewrite'>, compute: Compute): Effect[] {
  const path = compute(action.target, 'rewrite');
  const change = { set: parameters(action, compute), remove: action.removeQuery };
  exchange.rewrite(path, changedQuery(action.preserveQuery ? exchange.query : '', change));
  return [effect('path', '', exchange.path), effect('query', '', exchange.query)];
}

/** Headers by which an answer of the node works, which rules leave as they are there. */
const KEPT_OF_EDGE = [
  'cache-control',
  'content-security-policy',
  'location',
  'retry-after',
  'set-cookie',
  'x-request-id',
];

function editHeader(
  exchange: Exchange,
  action: ActionOf<'request_header' | 'response_header'>,
  compute: Compute,
): Effect[] {
  const { header, append } = action;
  const ofResponse = action.kind === 'response_header';
  const headers = ofResponse ? exchange.response!.headers : exchange.requestHeaders;
  if (ofResponse && exchange.response!.ofEdge && KEPT_OF_EDGE.includes(header)) return [effect('header_left', header)];
  if (!action.value) {
    headers.remove(header);
    return [effect('header_removed', header)];
  }
  let value: Bytes;
  try {
    value = compute(action.value, 'header');
  } catch (error) {
    if (error instanceof EvaluationFailure) return [effect('header_left', header)];
    throw error;
  }
  if (!headers.grow(header, value)) return [effect('header_left', header)];
  if (append) headers.add(header, value);
  else headers.set(header, value);
  return [effect(append ? 'header_added' : 'header_set', header, value)];
}

function override(exchange: Exchange, rule: RunRule, { overrides }: ActionOf<'config'>, exempts: boolean): Effect[] {
  return Object.entries(overrides).map(([name, value]) => {
    if (!exempts && isExemption(name, value)) return effect('exemption_left', name);
    exchange.overrides.set(name, value);
    exchange.overriddenBy.set(name, nameOf(rule));
    return effect('override', name, value);
  });
}

function count(exchange: Exchange, rule: RunRule, action: ActionOf<'rate_limit'>): Effect[] {
  const { key, counted, limit, windowSeconds, statusCode } = action;
  const read = exchange.field(counted.field, counted.name);
  const value = read !== null && typeof read === 'object' ? countedAddress(formatAddress(read)) : read;
  exchange.limits.push({ rule: nameOf(rule), key, value: shown(value), limit, windowSeconds, statusCode });
  return [effect('counted', key, value)];
}

function chooseOrigin(exchange: Exchange, { kind: _, ...choice }: ActionOf<'origin'>): Effect[] {
  const chosen = Object.entries(choice).filter(([, value]) => value !== '' && value !== 0);
  exchange.origin = { ...exchange.origin, ...Object.fromEntries(chosen) };
  return chosen.map(([name, value]) => effect('origin', name, value));
}
