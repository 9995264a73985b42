// A cache rule as it is checked, and as nodes get it.
import { create, toBinary } from '@bufbuild/protobuf';
import type { CacheBuilder } from '../../contract/expression/cache-builder.ts';
import { cacheBuilderOf } from '../../contract/expression/cache-builder.ts';
import type { ExpressionError } from '../../contract/expression/errors.ts';
import { checkCacheCondition } from '../../contract/expression/expression.ts';
import type { Facts } from '../../contract/expression/facts.ts';
import type { Condition } from '../../contract/expression/tree.ts';
import type { CacheRule } from '../../contract/resources/site-cache.ts';
import { type CacheRule as CacheRuleMessage, CacheRuleSchema } from '../../proto/gen/svc/config/v1/cache_pb.js';
import { ExpressionSchema } from '../../proto/gen/svc/config/v1/expression_pb.js';
import { expressionMessage } from '../rules/expression-message.ts';
import type { ListIds } from '../rules/rule-message.ts';

/** A condition with what it needs, and the form that shows it; null where none can. */
export interface CheckedCacheCondition {
  tree: Condition;
  facts: Facts;
  builder: CacheBuilder | null;
}

/** Any name of an IP list is taken. */
export function checkCacheRule(expression: string): CheckedCacheCondition | { error: ExpressionError } {
  const checked = checkCacheCondition(expression);
  if (!checked.valid) return { error: checked.error };
  return { tree: checked.tree, facts: checked.facts, builder: cacheBuilderOf(checked.tree) };
}

/** The condition as nodes get it; `lists` has every list that it names. */
export function encodeCacheCondition({ tree }: CheckedCacheCondition, lists: ListIds): Uint8Array {
  return toBinary(
    ExpressionSchema,
    expressionMessage(tree, (name) => lists.get(name)!),
  );
}

/** The message of a rule; one that bypasses has nothing of what would be stored. */
export function cacheRuleMessage(rule: CacheRule, condition: Uint8Array): CacheRuleMessage {
  const { priority, statusCodes, minSizeBytes, maxSizeBytes } = rule;
  const matching = {
    priority,
    condition,
    statusCodes,
    minSizeBytes: BigInt(minSizeBytes),
    maxSizeBytes: BigInt(maxSizeBytes),
  };
  if (rule.action === 'bypass') return create(CacheRuleSchema, { ...matching, bypass: true });
  const { edgeTtlSeconds, staleWhileRevalidateSeconds, staleIfErrorSeconds, browserTtlSeconds } = rule;
  return create(CacheRuleSchema, {
    ...matching,
    edgeTtlSeconds,
    overrideOrigin: rule.originCacheControl === 'override',
    staleWhileRevalidateSeconds,
    staleIfErrorSeconds,
    cacheAuthorized: rule.cacheAuthorized,
    cacheSetCookie: rule.cacheSetCookie,
    browserTtlSeconds,
  });
}

/** Capabilities that a rule needs beside those of its condition. */
export function capabilitiesOfCacheRule({ action, browserTtlSeconds, cacheSetCookie }: CacheRule): string[] {
  if (action === 'bypass') return [];
  return [...(browserTtlSeconds > 0 ? ['rules-v2'] : []), ...(cacheSetCookie ? ['site-content-v1'] : [])];
}
