// The form of a condition: groups of which one has to hold, each with rows that all have to hold. What has another shape
// cannot be shown so. Pure.
import { FIELDS, type FieldName } from '../../../../../contract/expression/fields.ts';
import { formatTree } from '../../../../../contract/expression/format.ts';
import { integerOf, sortedSet } from '../../../../../contract/expression/literals.ts';
import { OPERATORS, type OperatorName } from '../../../../../contract/expression/operators.ts';
import type { Condition, FieldNode, Literal, ValueType } from '../../../../../contract/expression/tree.ts';

export type RowOperator = OperatorName | 'in_list' | 'starts_with' | 'ends_with';

export interface BuilderRow {
  field: FieldName;
  /** Of the header, cookie or parameter; '' for a field without one. */
  name: string;
  not: boolean;
  operator: RowOperator;
  /** As typed; of `in` one a line; of `in_list` the name of the list. */
  value: string;
}

/** Rows of a group all hold; of the groups one does. No group at all: every request. */
export interface Builder {
  groups: readonly (readonly BuilderRow[])[];
}

/** Operators that a row about a type can have, in the order in which they are offered. */
export function rowOperators(type: ValueType): RowOperator[] {
  const own = (Object.keys(OPERATORS) as OperatorName[]).filter((name) =>
    (OPERATORS[name].types as readonly ValueType[]).includes(type),
  );
  if (type === 'ip') return [...own, 'in_list'];
  return type === 'string' ? [...own, 'starts_with', 'ends_with'] : own;
}

export const typeOf = (field: FieldName): ValueType => FIELDS.get(field)!.type;

/** A row about a field, with the first operator that goes with it. */
export function newRow(field: FieldName): BuilderRow {
  return { field, name: '', not: false, operator: 'eq', value: typeOf(field) === 'boolean' ? 'true' : '' };
}

/** The row about another field: what does not go with that begins anew. */
export function withField(row: BuilderRow, field: FieldName): BuilderRow {
  const type = typeOf(field);
  const name = FIELDS.get(field)!.name && FIELDS.get(row.field)!.name ? row.name : '';
  const kept = rowOperators(type).includes(row.operator);
  if (kept && type === typeOf(row.field)) return { ...row, field, name };
  return { ...newRow(field), name };
}

/** The same row with another operator; a value of another form begins anew. */
export function withOperator(row: BuilderRow, operator: RowOperator): BuilderRow {
  const fits = (row.operator === 'in_list') === (operator === 'in_list');
  const value = operator === 'in' || !row.value.includes('\n') ? row.value : row.value.split('\n', 1)[0]!;
  return { ...row, operator, value: fits ? value : '' };
}

/** The form that shows a condition, or null when none does. */
export function builderOf(tree: Condition): Builder | null {
  if (tree.op === 'literal' && tree.value) return { groups: [] };
  const groups = (tree.op === 'or' ? tree.children : [tree]).map((group) =>
    (group.op === 'and' ? group.children : [group]).map((row) => rowOf(row, false)),
  );
  if (groups.some((rows) => rows.includes(null))) return null;
  return { groups: groups as BuilderRow[][] };
}

function rowOf(node: Condition, not: boolean): BuilderRow | null {
  if (node.op === 'not') return not ? null : rowOf(node.child, true);
  if (node.op === 'call') {
    const [subject, text] = node.args;
    const known = node.function === 'starts_with' || node.function === 'ends_with';
    if (!known || subject?.op !== 'field' || text?.op !== 'text' || !isLine(text.value)) return null;
    return row(subject, not, node.function as RowOperator, text.value);
  }
  if (!('operand' in node) || node.operand.op !== 'field') return null;
  const { operand } = node;
  if (node.op === 'in_list') return row(operand, not, 'in_list', node.list);
  if (node.op !== 'in') return isLine(String(node.value)) ? row(operand, not, node.op, String(node.value)) : null;
  // Values stand one a line, without blanks around them.
  const lines = node.values.map(String);
  const shown = lines.every((line) => isLine(line) && line !== '' && line.trim() === line);
  return shown ? row(operand, not, 'in', lines.join('\n')) : null;
}

function row({ field, name }: FieldNode, not: boolean, operator: RowOperator, value: string): BuilderRow {
  return { field, name: name ?? '', not, operator, value };
}

/** What a field of one line shows as it is. */
function isLine(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return !/[\u0000-\u001f\u007f\u2028\u2029]/.test(text);
}

export interface Written {
  text: string;
  /** Where each row of each group stands in the text. */
  spans: readonly (readonly { at: number; end: number }[])[];
}

/** The condition that a form stands for. What was typed wrong stands in it as typed, for the checker to find. */
export function conditionOf({ groups }: Builder): Written {
  const filled = groups.filter((rows) => rows.length > 0);
  if (filled.length === 0) return { text: 'true', spans: groups.map(() => []) };
  let text = '';
  const spans = groups.map((rows) => {
    if (rows.length > 0 && text !== '') text += ' or ';
    return rows.map((each, index) => {
      if (index > 0) text += ' and ';
      const at = text.length;
      text += rowText(each);
      return { at, end: text.length };
    });
  });
  return { text, spans };
}

const NOWHERE = { at: 0, end: 0 };

function rowText(given: BuilderRow): string {
  const { field, name, not, operator, value } = given;
  const type = typeOf(field);
  const operand: FieldNode = { ...NOWHERE, op: 'field', field, name: FIELDS.get(field)!.name ? name : null, type };
  const written = formatTree(operand);
  const prefix = not ? 'not ' : '';
  if (operator === 'starts_with' || operator === 'ends_with')
    return `${prefix}${operator}(${written}, ${JSON.stringify(value)})`;
  if (operator === 'in_list') return `${prefix}${written} in $${value}`;
  if (operator === 'in') return `${prefix}${written} in {${setText(value, type)}}`;
  return `${prefix}${written} ${OPERATORS[operator].text} ${literalText(value, type)}`;
}

/** Values in the order that the checker keeps, so that reading them again changes nothing; as typed where one is wrong. */
function setText(value: string, type: ValueType): string {
  const lines = linesOf(value);
  if (type === 'ip' || type === 'boolean') return lines.join(' ');
  const literals = lines.map((line): Literal | null => (type === 'number' ? integerOf(line) : line));
  if (literals.includes(null)) return lines.join(' ');
  return sortedSet(literals as Literal[], type)
    .map((literal) => literalText(String(literal), type))
    .join(' ');
}

/** Values that were typed one a line. */
export function linesOf(value: string): string[] {
  return value
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

/** A value as the language writes it. */
export function literalText(value: string, type: ValueType): string {
  return type === 'string' ? JSON.stringify(value) : value.trim();
}
