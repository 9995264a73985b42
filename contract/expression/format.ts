// The canonical text of a tree: one space between words, only the parentheses that it needs, sets sorted, strings with
// as few escapes as JSON allows. Reading it again makes the same tree.
import { OPERATORS } from './operators.ts';
import type { Argument, Condition, Literal, Operand, Tree, ValueType } from './tree.ts';

/** The text of a condition or value. */
export function formatTree(tree: Tree): string {
  return tree.op === 'text' || tree.op === 'field' || tree.op === 'call' ? operand(tree) : condition(tree);
}

function condition(node: Condition): string {
  switch (node.op) {
    case 'and':
      return node.children
        .map((child) => (child.op === 'or' ? `(${condition(child)})` : condition(child)))
        .join(' and ');
    case 'or':
      return node.children.map(condition).join(' or ');
    case 'not':
      return `not ${node.child.op === 'and' || node.child.op === 'or' ? `(${condition(node.child)})` : condition(node.child)}`;
    case 'literal':
      return String(node.value);
    case 'call':
      return operand(node);
    case 'in':
      return `${operand(node.operand)} in {${node.values.map((value) => literal(value, node.operand.type)).join(' ')}}`;
    case 'in_list':
      return `${operand(node.operand)} in $${node.list}`;
    default:
      return `${operand(node.operand)} ${OPERATORS[node.op].text} ${literal(node.value, node.operand.type)}`;
  }
}

function operand(node: Argument | Operand): string {
  switch (node.op) {
    case 'text':
      return JSON.stringify(node.value);
    case 'integer':
      return String(node.value);
    case 'field':
      return formatField(node);
    case 'call':
      return `${node.function}(${node.args.map(operand).join(', ')})`;
  }
}

/** How a field is written, with its name in brackets where it has one. */
export function formatField({ field, name }: { field: string; name: string | null }): string {
  return name === null ? field : `${field}[${JSON.stringify(name)}]`;
}

function literal(value: Literal, type: ValueType): string {
  return type === 'string' ? JSON.stringify(value) : String(value);
}
