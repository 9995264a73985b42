// The typed tree of an expression. Strings are compared as UTF-8 bytes; a literal has the type of what it is compared
// with. Every node knows where it stands in the source, so that a result can be shown beside what was written.
import type { FieldName } from './fields.ts';
import type { FunctionName } from './functions.ts';
import type { OperatorName } from './operators.ts';

export type ValueType = 'string' | 'number' | 'boolean' | 'ip';

/** Offsets in the source, in UTF-16 code units: the first one, and the one after the last. */
export interface Span {
  readonly at: number;
  readonly end: number;
}

/** A string, a safe integer, a boolean, or the canonical text of an address or CIDR (one address has no length). */
export type Literal = string | number | boolean;

export interface FieldNode extends Span {
  readonly op: 'field';
  readonly field: FieldName;
  /** Of the header (lower case), cookie or argument; null for a field without brackets. */
  readonly name: string | null;
  readonly type: ValueType;
}

export interface CallNode extends Span {
  readonly op: 'call';
  readonly function: FunctionName;
  readonly type: ValueType;
  readonly args: readonly Argument[];
}

export interface TextNode extends Span {
  readonly op: 'text';
  readonly value: string;
}

export interface IntegerNode extends Span {
  readonly op: 'integer';
  readonly value: number;
}

export type Operand = FieldNode | CallNode;
export type Argument = Operand | TextNode | IntegerNode;

export interface ComparisonNode extends Span {
  readonly op: Exclude<OperatorName, 'in'>;
  readonly operand: Operand;
  readonly value: Literal;
}

export interface SetNode extends Span {
  readonly op: 'in';
  readonly operand: Operand;
  /** Sorted, each once. */
  readonly values: readonly Literal[];
}

export interface ListNode extends Span {
  readonly op: 'in_list';
  readonly operand: FieldNode;
  /** Name of an IP list. */
  readonly list: string;
}

export interface BooleanNode extends Span {
  readonly op: 'literal';
  readonly value: boolean;
}

export interface NotNode extends Span {
  readonly op: 'not';
  readonly child: Condition;
}

export interface LogicNode extends Span {
  readonly op: 'and' | 'or';
  /** Two or more, none of them of the same kind. */
  readonly children: readonly Condition[];
}

/** A call here has a boolean result. */
export type Condition = LogicNode | NotNode | BooleanNode | CallNode | ComparisonNode | SetNode | ListNode;

/** What computes a string: a target, a header, a parameter of a query. */
export type ValueExpression = TextNode | Operand;

export type Tree = Condition | ValueExpression;

/** Calls `visit` for the tree and everything below it, in the order of the source. */
export function walk(tree: Tree | Argument, visit: (node: Tree | Argument) => void): void {
  visit(tree);
  for (const child of childrenOf(tree)) walk(child, visit);
}

function childrenOf(node: Tree | Argument): readonly (Tree | Argument)[] {
  if ('children' in node) return node.children;
  if ('child' in node) return [node.child];
  if ('operand' in node) return [node.operand];
  return 'args' in node ? node.args : [];
}
