// The vectors of the language, and that they name every row of its tables.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { root } from '../../../../bin/lib/root.ts';
import { cacheBuilderOf } from '../../../../contract/expression/cache-builder.ts';
import { EXPRESSION_ERRORS } from '../../../../contract/expression/errors.ts';
import {
  type Checked,
  checkCacheCondition,
  checkCondition,
  checkValue,
} from '../../../../contract/expression/expression.ts';
import { FIELDS } from '../../../../contract/expression/fields.ts';
import { formatTree } from '../../../../contract/expression/format.ts';
import { FUNCTIONS } from '../../../../contract/expression/functions.ts';
import { OPERATORS } from '../../../../contract/expression/operators.ts';
import type { Phase } from '../../../../contract/expression/phases.ts';
import type { Condition, Tree } from '../../../../contract/expression/tree.ts';

interface Row {
  kind: 'condition' | 'value' | 'cacheRule';
  phase: Phase;
  source: string;
  expect: { error?: { code: string; position: number; params: Record<string, string> }; ok?: { formatted: string } };
}

const file = readFileSync(join(root, 'test/vectors/expressions.json'), 'utf8');
const { rows, lists } = JSON.parse(file) as { rows: Row[]; lists: string[] };
const known = new Set(lists);

function check({ kind, phase, source }: Row): Checked<Tree> {
  if (kind === 'cacheRule') return checkCacheCondition(source, known);
  return (kind === 'value' ? checkValue : checkCondition)(source, { phase, lists: known });
}

function outcome(row: Row): unknown {
  const result = check(row);
  if (!result.valid) {
    const { code, position, params } = result.error;
    return { error: { code, position, params } };
  }
  const { tree, facts } = result;
  const builder = row.kind === 'cacheRule' ? { builder: cacheBuilderOf(tree as Condition) } : {};
  return { ok: { formatted: formatTree(tree), ...facts, ...builder } };
}

test('every vector has the outcome that it names, with the character where it is wrong', (t) => {
  t.true(rows.length > 1000);
  const wrong = rows
    .map((row) => ({ source: row.source.slice(0, 200), expected: row.expect, got: outcome(row) }))
    .filter(({ expected, got }) => JSON.stringify(expected) !== JSON.stringify(got));
  t.deepEqual(wrong, []);
});

test('the canonical text of every vector is its own canonical text', (t) => {
  for (const row of rows) {
    const formatted = row.expect.ok?.formatted;
    if (formatted === undefined) continue;
    const again = check({ ...row, source: formatted });
    t.is(again.valid ? formatTree(again.tree) : again.error.code, formatted);
  }
});

test('vectors name every error, field, operator and function', (t) => {
  const codes = new Set(rows.map(({ expect }) => expect.error?.code));
  t.deepEqual(
    Object.keys(EXPRESSION_ERRORS).filter((code) => !codes.has(code)),
    [],
  );
  const accepted = rows.map(({ expect }) => expect.ok?.formatted ?? '').join('\n');
  const words = [...FIELDS.keys(), ...FUNCTIONS.keys(), ...Object.values(OPERATORS).map(({ text }) => text)];
  t.deepEqual(
    words.filter((word) => !accepted.includes(word)),
    [],
  );
});

test('an error has one sentence, its parameters in it, and what would be accepted', (t) => {
  for (const row of rows) {
    const result = check(row);
    if (result.valid) continue;
    const { message, params } = result.error;
    t.regex(message, /^[A-Z].+/);
    for (const value of Object.values(params)) t.true(message.includes(value), message);
  }
  const message = (source: string) => {
    const result = checkCondition(source, { phase: 'waf-custom' });
    return result.valid ? '' : result.error.message;
  };
  t.is(message('http.hots eq "a"'), 'This field does not exist. Accepted: http.host.');
  t.is(message('ssl and true'), 'This operator does not exist. Accepted: eq, ne, in.');
  t.regex(message('substring("a")'), /Accepted: substring\(s, start\[, length\]\)[.]$/);
});

test('the example of every field and function is valid', (t) => {
  for (const { example, phases } of FIELDS.values()) {
    const result = checkCondition(example, { phase: phases === 'response' ? 'compression' : 'waf-custom' });
    t.true(result.valid, example);
  }
  for (const { example, returns } of FUNCTIONS.values()) {
    const options = { phase: 'redirect' } as const;
    const asValue = returns === 'string' && checkValue(example, options).valid;
    t.true(asValue || checkCondition(example, options).valid, example);
  }
});
