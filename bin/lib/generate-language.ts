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

The syntax is described in [Expressions](../expressions.md). This page lists all fields, operators and functions.

## Fields

Response fields can be read only in the phases ${RESPONSE_PHASES.map(code).join(' and ')}.

${fields()}
## Operators

${operators()}
## Functions

A function marked "values only" is allowed once in a value expression and never in a condition.

${functions()}
## Limits

${bounds()}
## Errors

\`POST /rules/validate\` returns these codes as \`code\`. Words in braces are in \`params\`.

${table(
  ['Code', 'Message'],
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
  return table(['Field', 'Type', 'Description', 'Example', 'Needs'], rows);
}

function operators(): string {
  const rows = Object.values(OPERATORS).map(({ text, types, summary, needs: needed }) => [
    code(text),
    types.join(', '),
    cell(summary),
    needs(needed),
  ]);
  return table(['Operator', 'Types', 'Description', 'Needs'], rows);
}

function functions(): string {
  const rows = [...FUNCTIONS.values()].map(({ signature, returns, valueOnly, summary, example, needs: needed }) => [
    code(signature),
    `${returns}${valueOnly ? ', values only' : ''}`,
    cell(summary),
    code(example),
    needs(needed),
  ]);
  return table(['Function', 'Result', 'Description', 'Example', 'Needs'], rows);
}

function bounds(): string {
  const rows: [string, number][] = [
    ['Characters in an expression', limits.MAX_EXPRESSION],
    ['Characters in the condition of a cache rule', limits.MAX_CACHE_CONDITION],
    ['Tokens', limits.MAX_TOKENS],
    ['Nesting depth of parentheses and `not`', limits.MAX_NESTING],
    ['Conditions, functions and arguments together', limits.MAX_SOURCE_NODES],
    ['Values in braces', limits.MAX_SET_VALUES],
    ['Nesting depth of functions', limits.MAX_FUNCTION_NESTING],
    ['Bytes of a function result; a longer one fails the rule', limits.MAX_RESULT_BYTES],
    ['Bytes in a string', limits.MAX_STRING_BYTES],
    ['Characters in a regular expression', limits.MAX_REGEX],
    ['Repetitions in a regular expression', limits.MAX_REPEAT],
    ['Bytes in a wildcard pattern', limits.MAX_WILDCARD_BYTES],
    ['Stars in a wildcard pattern', limits.MAX_STARS],
    ['Bytes in a replacement', limits.MAX_REPLACEMENT_BYTES],
  ];
  return table(
    ['Limit', 'At most'],
    rows.map(([limit, most]) => [limit, String(most)]),
  );
}
