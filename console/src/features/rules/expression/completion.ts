// What could be written at a place of a source, by asking the checker what it would take there. Pure.
import { type CheckOptions, checkCondition, checkValue } from '../../../../../contract/expression/expression.ts';
import { FIELDS, type FieldName } from '../../../../../contract/expression/fields.ts';
import {
  type ArgumentSpec,
  FUNCTIONS,
  type FunctionName,
  type FunctionSpec,
} from '../../../../../contract/expression/functions.ts';
import { type Token, tokensOf } from '../../../../../contract/expression/lexer.ts';
import { OPERATORS, type OperatorName } from '../../../../../contract/expression/operators.ts';
import { type Phase, RESPONSE_PHASES } from '../../../../../contract/expression/phases.ts';
import type { ValueType } from '../../../../../contract/expression/tree.ts';

export type ExpressionKind = 'condition' | 'value';

export interface Language {
  kind: ExpressionKind;
  phase: Phase;
  /** Names of the IP lists that there are; without them any name is taken. */
  lists: readonly string[] | undefined;
}

export type Option =
  | { kind: 'field'; text: string; type: ValueType; field: FieldName }
  | { kind: 'function'; text: string; type: ValueType; function: FunctionName; signature: string }
  | { kind: 'operator'; text: string; operator: OperatorName }
  | { kind: 'list'; text: string }
  | { kind: 'word'; text: string };

export interface Completion {
  /** The part of the source that an option takes the place of. */
  from: number;
  to: number;
  options: readonly Option[];
}

const SHOWN = 60;
const WORD = /[A-Za-z0-9_.$-]/;

/** Fields that can be read in a phase. */
export function fieldsOf(phase: Phase): FieldName[] {
  return [...FIELDS.values()]
    .filter(({ phases }) => phases === 'all' || RESPONSE_PHASES.includes(phase))
    .map(({ field }) => field);
}

/** The checker of this kind of source. */
export function check(source: string, { kind, phase, lists }: Language) {
  const options: CheckOptions = lists ? { phase, lists: new Set(lists) } : { phase };
  return kind === 'value' ? checkValue(source, options) : checkCondition(source, options);
}

/** What fits at the cursor; null where nothing can be offered, as inside of a string. */
export function complete(source: string, cursor: number, language: Language): Completion | null {
  let from = cursor;
  while (from > 0 && WORD.test(source[from - 1]!)) from--;
  let to = cursor;
  while (to < source.length && WORD.test(source[to]!)) to++;
  const before = source.slice(0, from);
  if (tokensOf(before).at(-1)?.kind === 'wrong') return null;
  const typed = source.slice(from, cursor).toLowerCase();
  const options = offered(before, language).filter(({ text }) => text.toLowerCase().includes(typed));
  const ranked = options
    .map((option, index) => ({ option, index, rank: rankOf(option.text.toLowerCase(), typed) }))
    .sort((a, b) => a.rank - b.rank || a.index - b.index)
    .map(({ option }) => option)
    .slice(0, SHOWN);
  // A word that is whole already has nothing to be completed.
  const done = ranked.length === 0 || (ranked.length === 1 && ranked[0]!.text.toLowerCase() === typed);
  return done ? null : { from, to, options: ranked };
}

/** What begins so comes first, then what has a part that does. */
function rankOf(text: string, typed: string): number {
  if (text.startsWith(typed)) return 0;
  return text.split(/[._]/).some((part) => part.startsWith(typed)) ? 1 : 2;
}

function offered(before: string, language: Language): Option[] {
  const result = check(before, language);
  if (result.valid) return language.kind === 'value' ? [] : words('and', 'or');
  const { code, position } = result.error;
  // Something before is wrong already: anything may be meant.
  if (code !== 'unexpected_end' || position !== before.length) return operands(language, () => true);
  return result.accepted.flatMap((accepted) => meant(accepted, before, language));
}

function meant(accepted: string, before: string, language: Language): Option[] {
  const condition = language.kind === 'condition';
  const wanted = (type: ValueType) => condition || type === 'string';
  switch (accepted) {
    case 'a field':
      return fields(language, wanted);
    case 'a function':
      return functions(language, wanted);
    case 'an argument':
      return argumentsAt(before, language);
    case ')':
      return isInCall(tokensOf(before)) ? [] : words('and', 'or');
    case '$':
      return (language.lists ?? []).map((list) => ({ kind: 'list', text: `$${list}` }));
    case 'a literal of type boolean':
      return words('true', 'false');
    case 'not':
    case 'and':
    case 'or':
    case 'true':
    case 'false':
      return words(accepted);
    default:
      return operators(accepted);
  }
}

const words = (...texts: string[]): Option[] => texts.map((text) => ({ kind: 'word', text }));

function operators(accepted: string): Option[] {
  const found = (Object.keys(OPERATORS) as OperatorName[]).find((name) => OPERATORS[name].text === accepted);
  return found ? [{ kind: 'operator', text: accepted, operator: found }] : [];
}

function operands(language: Language, wanted: (type: ValueType) => boolean): Option[] {
  return [...fields(language, wanted), ...functions(language, wanted)];
}

function fields({ phase }: Language, wanted: (type: ValueType) => boolean): Option[] {
  return fieldsOf(phase)
    .map((field) => FIELDS.get(field)!)
    .filter(({ type }) => wanted(type))
    .map(({ field, type }) => ({ kind: 'field', text: field, type, field }));
}

function functions({ kind }: Language, wanted: (type: ValueType) => boolean): Option[] {
  return [...FUNCTIONS.values()]
    .filter(({ valueOnly, returns }) => (kind === 'value' || !valueOnly) && wanted(returns))
    .map((spec) => ({
      kind: 'function',
      text: spec.function,
      type: spec.returns,
      function: spec.function,
      signature: spec.signature,
    }));
}

/** Operands for the argument that comes next in the innermost call. */
function argumentsAt(before: string, language: Language): Option[] {
  const spec = argumentSpecAt(tokensOf(before));
  if (spec?.kind === 'any') return operands(language, () => true);
  return spec?.kind === 'string' ? operands(language, (type) => type === 'string') : [];
}

function argumentSpecAt(tokens: readonly Token[]): ArgumentSpec | undefined {
  const { spec, index } = innermost(tokens);
  return spec?.args[index];
}

const isInCall = (tokens: readonly Token[]) => innermost(tokens).spec !== undefined;

/** The function whose parenthesis was opened last and is open still, and which of its arguments comes next. */
function innermost(tokens: readonly Token[]): { spec: FunctionSpec | undefined; index: number } {
  let depth = 0;
  let index = 0;
  for (let at = tokens.length - 1; at >= 0; at--) {
    const token = tokens[at]!;
    if (token.kind !== 'sign') continue;
    if (token.text === ')') depth++;
    else if (token.text === ',' && depth === 0) index++;
    else if (token.text === '(' && depth-- === 0) {
      const name = tokens[at - 1];
      return { spec: name?.kind === 'word' ? FUNCTIONS.get(name.text) : undefined, index };
    }
  }
  return { spec: undefined, index };
}

export interface Edit {
  text: string;
  cursor: number;
}

/** The source with an option put in; the cursor stands where one goes on. */
export function putIn(source: string, { from, to }: Completion, option: Option): Edit {
  const rest = source.slice(to);
  const put = (text: string, back = 0): Edit => ({
    text: source.slice(0, from) + text + rest,
    cursor: from + text.length - back,
  });
  if (option.kind === 'function') return rest.startsWith('(') ? put(option.text, -1) : put(`${option.text}()`, 1);
  if (option.kind === 'field' && FIELDS.get(option.field)!.name) {
    return rest.startsWith('[') ? put(option.text) : put(`${option.text}[""]`, 2);
  }
  const blank = rest === '' || !/^[\s)\]},]/.test(rest) ? ' ' : '';
  return put(option.text + (goesOn(option) ? blank : ''));
}

/** Whether something follows the option in any case. */
const goesOn = ({ kind, text }: Option) => kind !== 'list' && text !== 'true' && text !== 'false';
