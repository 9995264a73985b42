// Reads conditions and values: their structure and, in the same pass, whether operators go with the types they meet.
import { atPositions, refuse } from './errors.ts';
import { positionInString, type Token } from './lexer.ts';
import { MAX_SET_VALUES } from './limits.ts';
import { integerOf, literalOf, sortedSet } from './literals.ts';
import { OPERATORS, type OperatorName, operatorStartingWith, operatorsOf } from './operators.ts';
import { isKeyword, readOperand, readText } from './read-operand.ts';
import type { Reader } from './reader.ts';
import { parseRegex } from './regex.ts';
import type { Condition, LogicNode, Operand, ValueExpression } from './tree.ts';
import { parseWildcard } from './wildcard.ts';

const CONDITION = ['a field', 'a function', 'not', '(', 'true', 'false'];
const AFTER_CONDITION = ['and', 'or'];
const LIST_NAME = /^\$[A-Za-z_][A-Za-z0-9_]{0,63}$/;

/** A whole source that is a condition. Throws ExpressionFault. */
export function readCondition(reader: Reader): Condition {
  const condition = readLogic(reader, 'or');
  return ended(reader, condition, AFTER_CONDITION);
}

/** A whole source that is a value expression. Throws ExpressionFault. */
export function readValue(reader: Reader): ValueExpression {
  const accepted = ['a string', 'a field', 'a function'];
  const token = reader.peek();
  if (token.kind === 'string') return ended(reader, readText(reader), []);
  if (token.kind !== 'word') return reader.refuseNext(accepted);
  if (isKeyword(token.text) || integerOf(token.text) !== null) return refuse('value_not_string', token.at);
  const value = readOperand(reader);
  if (value.type !== 'string') return refuse('value_not_string', token.at);
  if (value.op === 'field') reader.count(token.at);
  return ended(reader, value, []);
}

function ended<T>(reader: Reader, tree: T, accepted: readonly string[]): T {
  return reader.peek().kind === 'end' ? tree : reader.refuseNext([...accepted, 'the end']);
}

/** Conditions joined by `or`, or by `and`, which binds closer. One alone is itself; one of the same kind is taken in. */
function readLogic(reader: Reader, op: LogicNode['op']): Condition {
  const part = () => (op === 'or' ? readLogic(reader, 'and') : readUnary(reader));
  const at = reader.peek().at;
  const first = part();
  if (!reader.next(op)) return first;
  reader.countInTree(reader.peek().at);
  const parts = [first];
  while (reader.next(op)) {
    reader.take();
    parts.push(part());
  }
  const children = parts.flatMap((child) => (child.op === op ? (child as LogicNode).children : [child]));
  return { op, at, end: reader.end, children };
}

function readUnary(reader: Reader): Condition {
  const token = reader.peek();
  const { at } = token;
  if (reader.next('not')) {
    reader.countInTree(at);
    reader.take();
    const child = reader.nested(at, () => readUnary(reader));
    return { op: 'not', at, end: reader.end, child };
  }
  if (reader.next('(')) {
    reader.take();
    const inner = reader.nested(at, () => readLogic(reader, 'or'));
    reader.expect(')');
    return inner;
  }
  if (token.kind !== 'word') return reader.refuseNext(CONDITION);
  if (token.text === 'true' || token.text === 'false') {
    reader.take();
    reader.count(at);
    return { op: 'literal', at, end: token.end, value: token.text === 'true' };
  }
  if (token.text.startsWith('$')) return refuse('list_reference', at);
  if (isKeyword(token.text)) return reader.refuseNext(CONDITION);
  return readComparison(reader);
}

function readComparison(reader: Reader): Condition {
  const operand = readOperand(reader);
  const token = reader.peek();
  const word = token.kind === 'word' ? token.text : '';
  const operator = operatorStartingWith(word);
  // A boolean function is a condition by itself; a boolean field is compared.
  const alone = operand.op === 'call' && operand.type === 'boolean';
  if (alone && (token.kind === 'end' || reader.next(')') || word === 'and' || word === 'or')) return operand;
  const accepted = operatorsOf(operand.type);
  if (token.kind === 'word' && !operator) {
    refuse('unknown_operator', token.at, {}, accepted);
  }
  if (!operator) return reader.refuseNext(accepted);
  reader.take();
  if (operator === 'strict_wildcard') reader.expect('wildcard');
  const { types, refusal } = OPERATORS[operator];
  if (refusal && !types.includes(operand.type)) refuse(refusal, token.at);
  // A function that is compared has been counted itself.
  reader.count(operand.at);
  return operator === 'in' ? readIn(reader, operand, token) : readLiteral(reader, operand, operator);
}

function readLiteral(reader: Reader, operand: Operand, op: Exclude<OperatorName, 'in'>): Condition {
  const token = reader.peek();
  if (token.kind === 'end') return reader.refuseEnd([`a literal of type ${operand.type}`]);
  const value = literalOf(reader.source, token, operand.type);
  reader.take();
  const check = op === 'matches' ? parseRegex : op === 'wildcard' || op === 'strict_wildcard' ? parseWildcard : null;
  if (check) {
    atPositions(
      () => check(value as string),
      (index) => positionInString(reader.source, token, index),
    );
  }
  return { op, at: operand.at, end: token.end, operand, value };
}

function readIn(reader: Reader, operand: Operand, operator: Token): Condition {
  const token = reader.peek();
  if (token.kind === 'word' && token.text.startsWith('$')) return readList(reader, operand, token.text);
  const accepted = operand.op === 'field' && operand.type === 'ip' ? ['{', '$'] : ['{'];
  if (token.kind === 'end') return reader.refuseEnd(accepted);
  reader.expect('{');
  const values = [];
  while (!reader.next('}')) {
    const value = reader.peek();
    if (value.kind === 'end') return reader.refuseEnd(['}']);
    values.push(literalOf(reader.source, value, operand.type));
    if (values.length > MAX_SET_VALUES) refuse('set_too_large', operator.at, { max: MAX_SET_VALUES });
    reader.take();
  }
  if (values.length === 0) refuse('set_empty', operator.at);
  reader.take();
  return { op: 'in', at: operand.at, end: reader.end, operand, values: sortedSet(values, operand.type) };
}

function readList(reader: Reader, operand: Operand, text: string): Condition {
  const { at, end } = reader.take();
  if (operand.op !== 'field' || operand.type !== 'ip' || !LIST_NAME.test(text)) return refuse('list_reference', at);
  const list = text.slice(1);
  const { lists } = reader.context;
  if (lists && !lists.has(list)) refuse('unknown_list', at, { list });
  return { op: 'in_list', at: operand.at, end, operand, list };
}
