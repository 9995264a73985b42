// Evaluates trees as nodes do: strings are bytes, what is missing has a value, and what cannot be computed fails the
// evaluation instead of deciding it. It is behind "try it", and the other side of the comparison with the edge.
import { FIELDS, type FieldName } from '../../../contract/expression/fields.ts';
import { FUNCTIONS } from '../../../contract/expression/functions.ts';
import { MAX_RESULT_BYTES } from '../../../contract/expression/limits.ts';
import { parseRegex } from '../../../contract/expression/regex.ts';
import { isUsable, type ValueUse } from '../../../contract/expression/results.ts';
import type {
  Argument,
  CallNode,
  ComparisonNode,
  Condition,
  Literal,
  Operand,
  Tree,
  ValueExpression,
} from '../../../contract/expression/tree.ts';
import { parseWildcard } from '../../../contract/expression/wildcard.ts';
import { type Cidr, contains, formatAddress, parseCidr } from '../../../contract/scalars/cidr.ts';
import { type Bytes, bytesOf } from './bytes.ts';
import { EvaluationFailure, type FailureReason } from './failure.ts';
import { COMPUTE, type PlainFunction } from './functions.ts';
import { regexMatches, type Spend } from './regex-match.ts';
import { compileRegex } from './regex-program.ts';
import { regexReplace, regexReplaceMarked, wildcardReplace, wildcardReplaceMarked } from './replace.ts';
import { DECODED, encodedTarget, type Marked, marked, PATH_MARKS, PLAIN } from './target.ts';
import { wildcardFind } from './wildcard-match.ts';

/** Value of a field: bytes, number, boolean, or an address, null when there is none. */
export type FieldValue = Bytes | number | boolean | Cidr | null;

export interface Surroundings {
  /** Of the type that the field has; "", 0, false or null when it is missing. */
  field(field: FieldName, name: string | null): FieldValue;
  /** Whether the IP list of this name has the address. */
  inList(list: string, address: Cidr): boolean;
  /** Told every field, function and condition that was evaluated, with its value, inner ones first. */
  trace?(node: Tree, value: FieldValue): void;
  /** Told what each pattern has cost, so that many of them can share a bound. What it throws is thrown on. */
  readonly spend?: Spend;
}

export type Evaluated<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly failure: FailureReason };

/** Whether a condition holds. */
export function evaluateCondition(tree: Condition, around: Surroundings): Evaluated<boolean> {
  return evaluated(() => condition(tree, around));
}

/** The bytes of a value expression. */
export function evaluateValue(tree: ValueExpression, around: Surroundings): Evaluated<Bytes> {
  return evaluated(() => (tree.op === 'text' ? bytesOf(tree.value) : (operand(tree, around) as Bytes)));
}

/**
 * The bytes of a value expression for its use: of a redirect its target, of a rewrite the encoded path. Those that cannot be
 * used there fail it.
 */
export function evaluateFor(use: ValueUse, tree: ValueExpression, around: Surroundings): Evaluated<Bytes> {
  const result =
    use === 'redirect' || use === 'rewrite'
      ? evaluated(() => encodedTarget(use, markedValue(tree, around)))
      : evaluateValue(tree, around);
  return !result.ok || isUsable(use, result.value) ? result : { ok: false, failure: 'unusable_result' };
}

function evaluated<T>(evaluate: () => T): Evaluated<T> {
  try {
    return { ok: true, value: evaluate() };
  } catch (error) {
    if (error instanceof EvaluationFailure) return { ok: false, failure: error.reason };
    throw error;
  }
}

function condition(node: Condition, around: Surroundings): boolean {
  // Operands are told of by themselves.
  if (node.op === 'call') return operand(node, around) as boolean;
  const value = conditionValue(node, around);
  around.trace?.(node, value);
  return value;
}

function conditionValue(node: Exclude<Condition, CallNode>, around: Surroundings): boolean {
  switch (node.op) {
    case 'and':
      return node.children.every((child) => condition(child, around));
    case 'or':
      return node.children.some((child) => condition(child, around));
    case 'not':
      return !condition(node.child, around);
    case 'literal':
      return node.value;
    case 'in': {
      const value = operand(node.operand, around);
      return node.values.some((each) => equal(value, each));
    }
    case 'in_list': {
      const address = operand(node.operand, around) as Cidr | null;
      return address !== null && around.inList(node.list, address);
    }
    default:
      return compare(node, operand(node.operand, around), around.spend);
  }
}

function compare({ op, value: literal }: ComparisonNode, value: FieldValue, spend?: Spend): boolean {
  switch (op) {
    case 'eq':
      return equal(value, literal);
    case 'ne':
      return !equal(value, literal);
    case 'lt':
      return (value as number) < (literal as number);
    case 'le':
      return (value as number) <= (literal as number);
    case 'gt':
      return (value as number) > (literal as number);
    case 'ge':
      return (value as number) >= (literal as number);
    case 'contains':
      return (value as Bytes).includes(bytesOf(literal as string));
    case 'matches':
      return regexMatches(compileRegex(parseRegex(literal as string)), value as Bytes, spend);
    case 'wildcard':
    case 'strict_wildcard':
      return wildcardFind(parseWildcard(literal as string), value as Bytes, op === 'strict_wildcard') !== null;
  }
}

/** Whether a value is the literal; an address, whether the literal contains it. */
function equal(value: FieldValue, literal: Literal): boolean {
  if (value === null) return false;
  if (typeof value === 'object') return contains(parseCidr(literal as string)!, value);
  return value === (typeof literal === 'string' ? bytesOf(literal) : literal);
}

function operand(node: Operand, around: Surroundings): FieldValue {
  const value = node.op === 'field' ? around.field(node.field, node.name) : call(node, around);
  around.trace?.(node, value);
  return value;
}

/** Throws EvaluationFailure result_too_long, and what its arguments throw. */
function call(node: CallNode, around: Surroundings): FieldValue {
  const value = computed(node, around);
  if (typeof value === 'string' && value.length > MAX_RESULT_BYTES) throw new EvaluationFailure('result_too_long');
  return value;
}

function computed({ function: name, args }: CallNode, around: Surroundings): FieldValue {
  const value = (index: number) => argument(args[index]!, around);
  const literal = (index: number) => (args[index] as { value?: string } | undefined)?.value ?? '';
  if (name === 'to_string') return toBytes(value(0));
  if (name === 'regex_replace') return regexReplace(value(0) as Bytes, literal(1), literal(2), around.spend);
  if (name === 'wildcard_replace') {
    return wildcardReplace(value(0) as Bytes, literal(1), literal(2), literal(3) === 's');
  }
  return COMPUTE[name satisfies PlainFunction](args.map((_, index) => value(index) as Bytes | number));
}

/** Text with its marks; like {@link argument} but for functions that keep bytes of a path. */
function markedValue(node: Argument, around: Surroundings): Marked {
  const mark = node.op === 'field' ? PATH_MARKS[node.field] : undefined;
  if (mark !== undefined) return marked(argument(node, around) as Bytes, mark);
  if (node.op !== 'call') return marked(toBytes(argument(node, around)), PLAIN);
  const made = markedCall(node, around);
  if (!made) return marked(toBytes(operand(node, around)), PLAIN);
  if (made.text.length > MAX_RESULT_BYTES) throw new EvaluationFailure('result_too_long');
  around.trace?.(node, made.text);
  return made;
}

/** Null for a function that leaves nothing of its subject. */
function markedCall({ function: name, args }: CallNode, around: Surroundings): Marked | null {
  const [first] = args;
  const literal = (index: number) => (args[index] as { value?: string } | undefined)?.value ?? '';
  switch (name) {
    case 'concat': {
      const parts = args.map((arg) => markedValue(arg, around));
      return { text: parts.map(({ text }) => text).join(''), marks: parts.map(({ marks }) => marks).join('') };
    }
    case 'lower':
    case 'upper':
    case 'to_string': {
      if (name === 'to_string' && !isText(first!)) return null;
      const { text, marks } = markedValue(first!, around);
      return { text: name === 'to_string' ? text : (COMPUTE[name]([text]) as Bytes), marks };
    }
    case 'substring': {
      const rest = args.slice(1).map((arg) => argument(arg, around) as number);
      const cut = (value: Bytes) => COMPUTE.substring([value, ...rest]) as Bytes;
      const { text, marks } = markedValue(first!, around);
      return { text: cut(text), marks: cut(marks) };
    }
    case 'url_decode': {
      const { text, marks } = markedValue(first!, around);
      return marked(COMPUTE.url_decode([text]) as Bytes, /[^.]/.test(marks) ? DECODED : PLAIN);
    }
    case 'regex_replace':
      return regexReplaceMarked(markedValue(first!, around), literal(1), literal(2), around.spend);
    case 'wildcard_replace':
      return wildcardReplaceMarked(markedValue(first!, around), literal(1), literal(2), literal(3) === 's');
    default:
      return null;
  }
}

function isText(node: Argument): boolean {
  if (node.op === 'field') return FIELDS.get(node.field)!.type === 'string';
  return node.op === 'text' || (node.op === 'call' && FUNCTIONS.get(node.function)!.returns === 'string');
}

function argument(node: Argument, around: Surroundings): FieldValue {
  if (node.op === 'text') return bytesOf(node.value);
  return node.op === 'integer' ? node.value : operand(node, around);
}

function toBytes(value: FieldValue): Bytes {
  if (value === null) return '';
  return typeof value === 'object' ? formatAddress(value) : String(value);
}
