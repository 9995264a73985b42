// A rule as nodes get it.
import { create, toBinary } from '@bufbuild/protobuf';
import type { ExpressionError } from '../../contract/expression/errors.ts';
import { checkCondition, checkValue } from '../../contract/expression/expression.ts';
import type { Facts } from '../../contract/expression/facts.ts';
import type { Phase } from '../../contract/expression/phases.ts';
import type { Tree } from '../../contract/expression/tree.ts';
import type { Rule } from '../../contract/scalars/rule.ts';
import { type ActionOf, headerOfKey, type RuleAction } from '../../contract/scalars/rule-action.ts';
import { ExpressionSchema } from '../../proto/gen/svc/config/v1/expression_pb.js';
import {
  AllowActionSchema,
  BlockActionSchema,
  ChallengeActionSchema,
  Coding,
  CompressionActionSchema,
  ConfigActionSchema,
  HeaderActionSchema,
  LogActionSchema,
  OriginActionSchema,
  type QueryEdit,
  QueryEditSchema,
  QueryParameterSchema,
  RateLimitActionSchema,
  RateLimitKey,
  RedirectActionSchema,
  RewriteActionSchema,
  type Rule as RuleMessage,
  RulePhase,
  RuleSchema,
  type RuleValue,
  RuleValueSchema,
} from '../../proto/gen/svc/config/v1/rules_pb.js';
import { challengeOf } from '../security/protection.entry.ts';
import { expressionMessage } from './expression-message.ts';

/** The ids of IP lists by their names. */
export type ListIds = ReadonlyMap<string, string>;

export interface ExpressionFault {
  /** Path of the expression below the rule: `/expression`, `/action/target`, … */
  field: string;
  error: ExpressionError;
}

/** The expressions of a rule, each with what it needs. */
export interface CheckedRule {
  rule: Rule;
  condition: Tree;
  /** Trees of the action's value expressions by their field. */
  values: ReadonlyMap<string, Tree>;
  /** Of the condition and of the values. */
  facts: readonly Facts[];
}

const PHASES: Readonly<Record<Phase, RulePhase>> = {
  'request-transform': RulePhase.REQUEST_TRANSFORM,
  redirect: RulePhase.REDIRECT,
  config: RulePhase.CONFIG,
  'waf-custom': RulePhase.WAF_CUSTOM,
  ratelimit: RulePhase.RATELIMIT,
  cache: RulePhase.CACHE,
  origin: RulePhase.ORIGIN,
  'response-transform': RulePhase.RESPONSE_TRANSFORM,
  compression: RulePhase.COMPRESSION,
};
const CODINGS = { zstd: Coding.ZSTD, br: Coding.BR, gzip: Coding.GZIP } as const;
const KEYS: Readonly<Record<string, RateLimitKey>> = {
  'ip.src': RateLimitKey.ADDRESS,
  'http.host': RateLimitKey.HOST,
  'tls.ja4': RateLimitKey.JA4,
};

/** Checks the expressions of a rule; the first that is not valid is answered. Any name of an IP list is taken. */
export function checkRule(rule: Rule): CheckedRule | ExpressionFault {
  const { phase } = rule;
  const condition = checkCondition(rule.expression, { phase });
  if (!condition.valid) return { field: '/expression', error: condition.error };
  const values = new Map<string, Tree>();
  const facts = [condition.facts];
  for (const [field, source] of valueExpressions(rule.action)) {
    const value = checkValue(source, { phase });
    if (!value.valid) return { field, error: value.error };
    values.set(field, value.tree);
    facts.push(value.facts);
  }
  return { rule, condition: condition.tree, values, facts };
}

/** Value expressions of an action by their fields; those that are empty are none. */
function valueExpressions(action: RuleAction): [field: string, source: string][] {
  return expressionFields(action).filter(([, source]) => source !== '');
}

function expressionFields(action: RuleAction): [field: string, source: string][] {
  switch (action.kind) {
    case 'redirect':
    case 'rewrite':
      return [
        ['/action/target', action.target],
        ...action.setQuery.map(({ expression }, index): [string, string] => [parameterField(index), expression]),
      ];
    case 'request_header':
    case 'response_header':
      return [['/action/expression', action.expression]];
    default:
      return [];
  }
}

function parameterField(index: number): string {
  return `/action/setQuery/${index}/expression`;
}

/** The message of a checked rule; `lists` has every list that it names. */
export function ruleMessage({ rule, condition, values }: CheckedRule, lists: ListIds): RuleMessage {
  const encoded = (tree: Tree) =>
    toBinary(
      ExpressionSchema,
      expressionMessage(tree, (name) => lists.get(name)!),
    );
  const makeValue = (field: string, text: string): RuleValue => {
    const tree = values.get(field);
    return create(RuleValueSchema, {
      value: tree ? { case: 'expression', value: encoded(tree) } : { case: 'text', value: text },
    });
  };
  return create(RuleSchema, {
    id: rule.id,
    phase: PHASES[rule.phase],
    condition: encoded(condition),
    action: actionMessage(rule.action, makeValue),
  });
}

/** A rule that no node can use: what an entry has in place of one that never compiled, so that it fails closed. */
export function unusableRule({ id, phase }: Rule): RuleMessage {
  return create(RuleSchema, { id, phase: PHASES[phase] });
}

type MakeValue = (field: string, text: string) => RuleValue;

function actionMessage(action: RuleAction, makeValue: MakeValue): RuleMessage['action'] {
  switch (action.kind) {
    case 'block':
      return { case: 'block', value: create(BlockActionSchema, { status: action.statusCode }) };
    case 'log':
      return { case: 'log', value: create(LogActionSchema) };
    case 'allow':
      return { case: 'allow', value: create(AllowActionSchema) };
    case 'challenge':
      return { case: 'challenge', value: create(ChallengeActionSchema, { type: challengeOf(action.type) }) };
    case 'redirect': {
      const target = makeValue('/action/target', action.value);
      const fields = { target, status: action.statusCode, query: queryEdit(action, makeValue) };
      return { case: 'redirect', value: create(RedirectActionSchema, fields) };
    }
    case 'rewrite': {
      const target = makeValue('/action/target', action.value);
      return { case: 'rewrite', value: create(RewriteActionSchema, { target, query: queryEdit(action, makeValue) }) };
    }
    case 'request_header':
      return { case: 'requestHeader', value: create(HeaderActionSchema, headerFields(action, makeValue)) };
    case 'response_header': {
      const fields = { ...headerFields(action, makeValue), append: action.append };
      return { case: 'responseHeader', value: create(HeaderActionSchema, fields) };
    }
    case 'config':
      return { case: 'config', value: create(ConfigActionSchema, configFields(action)) };
    case 'rate_limit':
      return { case: 'rateLimit', value: create(RateLimitActionSchema, rateLimitFields(action)) };
    case 'origin': {
      const { originGroup, hostHeader, sni, port } = action;
      return { case: 'origin', value: create(OriginActionSchema, { group: originGroup, hostHeader, sni, port }) };
    }
    case 'compression': {
      const codings = action.algorithms.map((name) => CODINGS[name]);
      return { case: 'compression', value: create(CompressionActionSchema, { codings }) };
    }
  }
}

function queryEdit(action: ActionOf<'redirect'> | ActionOf<'rewrite'>, makeValue: MakeValue): QueryEdit {
  const set = action.setQuery
    .map(({ name, value }, index) =>
      create(QueryParameterSchema, { name, value: makeValue(parameterField(index), value) }),
    )
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  return create(QueryEditSchema, { preserve: action.preserveQuery, set, remove: action.removeQuery });
}

function headerFields(action: ActionOf<'request_header'> | ActionOf<'response_header'>, makeValue: MakeValue) {
  const { header, value, remove } = action;
  return { name: header, ...(remove ? {} : { value: makeValue('/action/expression', value) }) };
}

function configFields({ kind: _, requestBodyLimit, ccMaxLevel, ...fields }: ActionOf<'config'>) {
  return {
    ...fields,
    ...(requestBodyLimit === undefined ? {} : { requestBodyLimit: BigInt(requestBodyLimit) }),
    ...(ccMaxLevel === undefined ? {} : { ccMaxLevel: challengeOf(ccMaxLevel) }),
  };
}

function rateLimitFields({ limit, windowSeconds, key, statusCode }: ActionOf<'rate_limit'>) {
  const header = headerOfKey(key);
  return { limit, windowSeconds, status: statusCode, key: KEYS[key] ?? RateLimitKey.HEADER, header: header ?? '' };
}
