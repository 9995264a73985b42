// The page of the rule language in the reference: its fields, operators, functions, limits and errors, from the tables
// that the checker has.
import { EXPRESSION_ERRORS } from '../../contract/expression/errors.ts';
import { FIELDS } from '../../contract/expression/fields.ts';
import { FUNCTIONS } from '../../contract/expression/functions.ts';
import * as limits from '../../contract/expression/limits.ts';
import { OPERATORS } from '../../contract/expression/operators.ts';
import { RESPONSE_PHASES } from '../../contract/expression/phases.ts';
import { cell, code, table } from './markdown.ts';

const needs = (capabilities: readonly string[]) => capabilities.map(code).join(', ');
const NAMES = { header: '["name"]', cookie: '["name"]', argument: '["name"]' };

/** The page as Markdown. */
export function languagePage(): string {
  return `# Expressions of rules

How expressions are written is in [Expressions](../expressions.md); here is all that can be in one.

## Fields

Fields that need a response can be read in the phases ${RESPONSE_PHASES.map(code).join(' and ')} only.

${fields()}
## Operators

${operators()}
## Functions

Functions for values only can stand once in a value expression, and in no condition.

${functions()}
## Limits

${bounds()}
## Errors

What \`POST /rules/validate\` answers as \`code\`; words in braces are in \`params\`.

${table(
  ['Code', ''],
  Object.entries(EXPRESSION_ERRORS).map(([name, message]) => [code(name), cell(message)]),
)}`;
}

function fields(): string {
  const rows = [...FIELDS.values()].map(({ field, name, type, phases, needs: needed, summary, example }) => [
    code(`${field}${name ? NAMES[name] : ''}`),
    `${type}${phases === 'response' ? ', response' : ''}`,
    cell(summary),
    code(example),
    needs(needed),
  ]);
  return table(['Field', 'Type', '', 'Example', 'Needs'], rows);
}

function operators(): string {
  const rows = Object.values(OPERATORS).map(({ text, types, summary, needs: needed }) => [
    code(text),
    types.join(', '),
    cell(summary),
    needs(needed),
  ]);
  return table(['Operator', 'Types', '', 'Needs'], rows);
}

function functions(): string {
  const rows = [...FUNCTIONS.values()].map(({ signature, returns, valueOnly, summary, example, needs: needed }) => [
    code(signature),
    `${returns}${valueOnly ? ', values only' : ''}`,
    cell(summary),
    code(example),
    needs(needed),
  ]);
  return table(['Function', 'Result', '', 'Example', 'Needs'], rows);
}

function bounds(): string {
  const rows: [string, number][] = [
    ['Characters of an expression', limits.MAX_EXPRESSION],
    ['Characters of the condition of a cache rule', limits.MAX_CACHE_CONDITION],
    ['Words and signs', limits.MAX_TOKENS],
    ['Parentheses and `not` inside each other', limits.MAX_NESTING],
    ['Conditions, functions and arguments together', limits.MAX_SOURCE_NODES],
    ['Values in braces', limits.MAX_SET_VALUES],
    ['Functions inside each other', limits.MAX_FUNCTION_NESTING],
    ['Bytes of what a function makes; more fail the rule', limits.MAX_RESULT_BYTES],
    ['Bytes of a string', limits.MAX_STRING_BYTES],
    ['Characters of a regular expression', limits.MAX_REGEX],
    ['Repetitions that a regular expression can ask for', limits.MAX_REPEAT],
    ['Bytes of a wildcard pattern', limits.MAX_WILDCARD_BYTES],
    ['Stars of a wildcard pattern', limits.MAX_STARS],
    ['Bytes of a replacement', limits.MAX_REPLACEMENT_BYTES],
  ];
  return table(
    ['', 'At most'],
    rows.map(([what, most]) => [what, String(most)]),
  );
}
