// Random rows of the shape of test/vectors/expression-values.json: what our evaluation makes of them, for another one.
import { toBinary } from '@bufbuild/protobuf';
import { checkCondition, checkValue } from '../../contract/expression/expression.ts';
import { formatTree } from '../../contract/expression/format.ts';
import { expressionMessage } from '../../models/rules/expression-message.ts';
import { ExpressionSchema } from '../../proto/gen/svc/config/v1/expression_pb.js';
import { evaluateCondition, evaluateValue } from '../../services/rules/evaluate/evaluate.ts';
import { type GivenFields, PAIR_LISTS, randomFields, TreeMaker } from './expression-pairs.ts';
import { givenFields } from './given-fields.ts';
import { Random } from './random.ts';

export interface PairRow {
  kind: 'condition' | 'value';
  source: string;
  fields: GivenFields;
  expect: { value: boolean | string } | { failure: string };
  tree: string;
}

const PHASE = { phase: 'compression' } as const;

/** So many valid rows; two of three are conditions. */
export function* pairRows(seed: number, count: number): Generator<PairRow> {
  const random = new Random(seed);
  for (let made = 0; made < count; ) {
    const fields = randomFields(random);
    const maker = new TreeMaker(random, fields);
    const kind = random.chance(2 / 3) ? 'condition' : 'value';
    const source = formatTree(kind === 'value' ? maker.value() : maker.condition());
    const row = kind === 'value' ? valueRow(source, fields) : conditionRow(source, fields);
    if (!row) continue;
    made++;
    yield row;
  }
}

function conditionRow(source: string, fields: GivenFields): PairRow | null {
  const checked = checkCondition(source, PHASE);
  if (!checked.valid) return null;
  const result = evaluateCondition(checked.tree, givenFields(fields, PAIR_LISTS));
  const expect = result.ok ? { value: result.value } : { failure: result.failure };
  return { kind: 'condition', source, fields, expect, tree: encoded(checked.tree) };
}

function valueRow(source: string, fields: GivenFields): PairRow | null {
  const checked = checkValue(source, PHASE);
  if (!checked.valid) return null;
  const result = evaluateValue(checked.tree, givenFields(fields, PAIR_LISTS));
  const expect = result.ok ? { value: result.value } : { failure: result.failure };
  return { kind: 'value', source, fields, expect, tree: encoded(checked.tree) };
}

function encoded(tree: Parameters<typeof expressionMessage>[0]): string {
  const message = expressionMessage(tree, (name) => `id-of-${name}`);
  return Buffer.from(toBinary(ExpressionSchema, message)).toString('base64');
}
