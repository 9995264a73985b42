// Reads fields and functions with their arguments, and finds their types.
import { atPositions, refuse } from './errors.ts';
import { FIELDS, type FieldName } from './fields.ts';
import { type ArgumentSpec, FUNCTIONS, type FunctionSpec } from './functions.ts';
import { positionInString, type Token } from './lexer.ts';
import { MAX_FUNCTION_NESTING } from './limits.ts';
import { integerOf, stringOf } from './literals.ts';
import { type NameKind, nameErrorOf, wrongInName } from './names.ts';
import { nearest } from './nearest.ts';
import { operatorStartingWith } from './operators.ts';
import { RESPONSE_PHASES } from './phases.ts';
import type { Reader } from './reader.ts';
import { parseRegex } from './regex.ts';
import type { Argument, CallNode, FieldNode, Operand, TextNode } from './tree.ts';
import { parseReplacement, parseWildcard } from './wildcard.ts';

type Word = Token & { kind: 'word' };

const FLAT_HEADER = 'http.request.headers.';

/** Whether a word is part of the language itself and can name nothing. */
export function isKeyword(word: string): boolean {
  return ['and', 'or', 'not', 'true', 'false'].includes(word) || operatorStartingWith(word) !== undefined;
}

/** A field or function; the next token is a word that is no keyword. `depth`: functions it stands in. */
export function readOperand(reader: Reader, depth = 0): Operand {
  const word = reader.take() as Word;
  if (reader.next('(')) return readCall(reader, word, depth + 1);
  if (word.text.startsWith(FLAT_HEADER)) return flatHeader(word);
  const spec = FIELDS.get(word.text);
  if (!spec) return refuse('unknown_field', word.at, {}, nearest(word.text, FIELDS.keys()));
  if (spec.phases === 'response' && !RESPONSE_PHASES.includes(reader.context.phase)) refuse('response_field', word.at);
  const name = spec.name ? readName(reader, spec.name) : null;
  return { op: 'field', at: word.at, end: reader.end, field: spec.field, name, type: spec.type };
}

/** The older spelling, `http.request.headers.host`. */
function flatHeader({ at, end, text }: Word): FieldNode {
  const field: FieldName = 'http.request.headers';
  const name = text.slice(FLAT_HEADER.length);
  const wrong = wrongInName('header', name);
  if (wrong >= 0) refuse(nameErrorOf('header'), at + FLAT_HEADER.length + wrong);
  return { op: 'field', at, end, field, name: name.toLowerCase(), type: FIELDS.get(field)!.type };
}

function readName(reader: Reader, kind: NameKind): string {
  reader.expect('[');
  const token = reader.peek();
  if (token.kind === 'end') return reader.refuseEnd(['a name in double quotes']);
  if (token.kind !== 'string') return refuse('expected_string', token.at);
  reader.take();
  const wrong = wrongInName(kind, token.value);
  if (wrong >= 0) refuse(nameErrorOf(kind), positionInString(reader.source, token, wrong));
  reader.expect(']');
  return kind === 'header' ? token.value.toLowerCase() : token.value;
}

function readCall(reader: Reader, word: Word, depth: number): CallNode {
  const spec = FUNCTIONS.get(word.text);
  if (!spec) return refuse('unknown_function', word.at, {}, nearest(word.text, FUNCTIONS.keys()));
  if (spec.valueOnly) {
    if (!reader.context.value) refuse('value_only_function', word.at);
    if (reader.once.has(spec.function)) refuse('function_repeated', word.at);
    reader.once.add(spec.function);
  }
  if (depth > MAX_FUNCTION_NESTING) refuse('functions_too_deep', word.at);
  reader.count(word.at);
  reader.expect('(');
  const args = readArguments(reader, spec, depth);
  return { op: 'call', at: word.at, end: reader.end, function: spec.function, type: spec.returns, args };
}

function readArguments(reader: Reader, spec: FunctionSpec, depth: number): Argument[] {
  const args: Argument[] = [];
  /** Groups or stars of the pattern, for the replacement after it. */
  let captures = 0;
  const tooFew = () => refuse('too_few_arguments', reader.peek().at, {}, [spec.signature]);
  if (reader.next(')')) tooFew();
  for (;;) {
    const argument = spec.args[args.length];
    if (!argument) return refuse('too_many_arguments', reader.peek().at, {}, [spec.signature]);
    const node = readArgument(reader, argument, depth);
    if (argument.kind === 'pattern') captures = inString(reader, node, (text) => parseRegex(text).groups);
    if (argument.kind === 'glob') captures = inString(reader, node, (text) => parseWildcard(text).length - 1);
    if (argument.kind === 'replacement') inString(reader, node, (text) => parseReplacement(text, captures));
    args.push(node);
    if (reader.next(',')) {
      reader.take();
      continue;
    }
    if (args.length < spec.required) {
      if (reader.next(')')) tooFew();
      reader.expect(',');
    }
    reader.expect(')');
    return args;
  }
}

/** What `read` makes of a string literal; what it refuses is refused at its place in the source. */
function inString<T>(reader: Reader, literal: Argument, read: (text: string) => T): T {
  const { value } = literal as TextNode;
  return atPositions(
    () => read(value),
    (index) => positionInString(reader.source, literal, index),
  );
}

function readArgument(reader: Reader, spec: ArgumentSpec, depth: number): Argument {
  const token = reader.peek();
  if (token.kind === 'end') return reader.refuseEnd(['an argument']);
  if (token.kind === 'sign') return reader.refuseNext(['an argument']);
  if (spec.kind === 'integer') return readInteger(reader, spec.min, spec.max);
  if (spec.kind === 'string' || spec.kind === 'any') {
    return token.kind === 'string' ? readText(reader) : readOperandOf(reader, spec.kind, depth);
  }
  if (token.kind !== 'string') return refuse('literal_argument', token.at);
  if (spec.kind === 'flags' && token.value !== 's') return refuse('flags', token.at);
  return readText(reader);
}

/** A string literal as an argument or a value. */
export function readText(reader: Reader): TextNode {
  const token = reader.take() as Token & { kind: 'string' };
  reader.count(token.at);
  return { op: 'text', at: token.at, end: token.end, value: stringOf(reader.source, token) };
}

function readInteger(reader: Reader, min: number, max: number): Argument {
  const { at, end, ...token } = reader.take();
  const value = 'text' in token ? integerOf(token.text) : null;
  if (value === null || value < min || value > max) return refuse('integer_argument', at, { min, max });
  reader.count(at);
  return { op: 'integer', at, end, value };
}

function readOperandOf(reader: Reader, kind: 'string' | 'any', depth: number): Operand {
  const { at, text } = reader.peek() as Word;
  if (text.startsWith('$')) refuse('list_reference', at);
  if (isKeyword(text) || integerOf(text) !== null) refuse('argument_not_string', at);
  const operand = readOperand(reader, depth);
  if (operand.op === 'field') reader.count(at);
  if (kind === 'string' && operand.type !== 'string') refuse('argument_not_string', at);
  return operand;
}
