// The language of rules. A source is a condition (which requests a rule is about), a value (a text that is computed from
// a request) or the condition of a cache rule. Only the console reads sources; nodes get the tree.
import { cacheBuilderOf } from './cache-builder.ts';
import { type ExpressionError, ExpressionFault, errorOf, refuse } from './errors.ts';
import { type Facts, factsOf } from './facts.ts';
import { MAX_CACHE_CONDITION, MAX_EXPRESSION } from './limits.ts';
import type { Phase } from './phases.ts';
import { readCondition, readValue } from './read-condition.ts';
import { Reader } from './reader.ts';
import type { Condition, ValueExpression } from './tree.ts';

export type Checked<T> =
  | { readonly valid: true; readonly tree: T; readonly facts: Facts }
  | {
      readonly valid: false;
      readonly error: ExpressionError;
      /** What could stand there instead, where that is a short list: as the message names it. */
      readonly accepted: readonly string[];
    };

export interface CheckOptions {
  readonly phase: Phase;
  /** Names of the IP lists that there are; without it any name is taken. */
  readonly lists?: ReadonlySet<string>;
}

/** The tree of a rule's condition, or the first thing that is wrong with it. Throws nothing. */
export function checkCondition(source: string, { phase, lists }: CheckOptions): Checked<Condition> {
  return checked(source, MAX_EXPRESSION, () => {
    const tree = readCondition(new Reader(source, { phase, lists, value: false }));
    return { tree, facts: factsOf(tree, false) };
  });
}

/** The tree of a value expression, or the first thing that is wrong with it. Throws nothing. */
export function checkValue(source: string, { phase, lists }: CheckOptions): Checked<ValueExpression> {
  return checked(source, MAX_EXPRESSION, () => {
    const tree = readValue(new Reader(source, { phase, lists, value: true }));
    return { tree, facts: factsOf(tree, true) };
  });
}

/**
 * The tree of a cache rule's condition, or the first thing that is wrong with it. What the form of a cache rule can
 * show needs no capability beside the cache's own. Any other needs rules-v2. Throws nothing.
 */
export function checkCacheCondition(source: string, lists?: ReadonlySet<string>): Checked<Condition> {
  return checked(source, MAX_CACHE_CONDITION, () => {
    const tree = readCondition(new Reader(source, { phase: 'cache', lists, value: false }));
    const facts = factsOf(tree, false);
    if (cacheBuilderOf(tree)) return { tree, facts: { ...facts, capabilities: [] } };
    const { capabilities } = facts;
    const needed = capabilities.includes('rules-v2') ? capabilities : (['rules-v2', ...capabilities] as const);
    return { tree, facts: { ...facts, capabilities: needed } };
  });
}

function checked<T>(source: string, max: number, check: () => { tree: T; facts: Facts }): Checked<T> {
  try {
    if (source.length > max) refuse('too_long', max, { max });
    return { valid: true, ...check() };
  } catch (error) {
    if (error instanceof ExpressionFault) return { valid: false, error: errorOf(error), accepted: error.accepted };
    throw error;
  }
}
