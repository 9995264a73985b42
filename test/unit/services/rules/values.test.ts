// The vectors of what expressions are, over bytes.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { toBinary } from '@bufbuild/protobuf';
import test from 'ava';
import { root } from '../../../../bin/lib/root.ts';
import { checkCondition, checkValue } from '../../../../contract/expression/expression.ts';
import { FIELDS } from '../../../../contract/expression/fields.ts';
import { FUNCTIONS } from '../../../../contract/expression/functions.ts';
import { OPERATORS } from '../../../../contract/expression/operators.ts';
import { expressionMessage } from '../../../../models/rules/expression-message.ts';
import { ExpressionSchema } from '../../../../proto/gen/svc/config/v1/expression_pb.js';
import { evaluateCondition, evaluateValue } from '../../../../services/rules/evaluate/evaluate.ts';
import { givenFields } from '../../../helpers/given-fields.ts';

interface Row {
  kind: 'condition' | 'value';
  source: string;
  fields: Record<string, string | number | boolean>;
  expect: { value?: boolean | string; failure?: string };
  tree: string;
}

const file = readFileSync(join(root, 'test/vectors/expression-values.json'), 'utf8');
const { rows, lists } = JSON.parse(file) as { rows: Row[]; lists: Record<string, string[]> };
const PHASE = { phase: 'response-transform' } as const;

function outcome({ kind, source, fields }: Row): { expect: object; tree: string } {
  const around = givenFields(fields, lists);
  const checked = kind === 'value' ? checkValue(source, PHASE) : checkCondition(source, PHASE);
  if (!checked.valid) return { expect: checked.error, tree: '' };
  const { tree } = checked;
  const result = kind === 'value' ? evaluateValue(tree as never, around) : evaluateCondition(tree as never, around);
  const message = expressionMessage(tree, (name) => `id-of-${name}`);
  return {
    expect: result.ok ? { value: result.value } : { failure: result.failure },
    tree: Buffer.from(toBinary(ExpressionSchema, message)).toString('base64'),
  };
}

test('every vector has its value, and its tree', (t) => {
  t.true(rows.length > 300);
  const wrong = rows
    .map((row) => ({ source: row.source, expected: { expect: row.expect, tree: row.tree }, got: outcome(row) }))
    .filter(({ expected, got }) => JSON.stringify(expected) !== JSON.stringify(got));
  t.deepEqual(wrong, []);
});

test('vectors have every operator and function, and conditions that are true and that are not', (t) => {
  const all = rows.map(({ source }) => source).join('\n');
  const words = [...FUNCTIONS.keys(), ...Object.values(OPERATORS).map(({ text }) => ` ${text} `)];
  t.deepEqual(
    words.filter((word) => !all.includes(word)),
    [],
  );
  const known = (name: string) => FIELDS.has(name.replace(/\[.*\]$/, ''));
  t.true(rows.every(({ fields }) => Object.keys(fields).every(known)));
  for (const value of [true, false]) t.true(rows.filter(({ expect }) => expect.value === value).length > 50);
});
