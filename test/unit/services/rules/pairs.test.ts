// What the pairs are with which two evaluations are compared.
import test from 'ava';
import { checkCondition, checkValue } from '../../../../contract/expression/expression.ts';
import { formatTree } from '../../../../contract/expression/format.ts';
import { OPERATORS, type OperatorName } from '../../../../contract/expression/operators.ts';
import { evaluateCondition, evaluateValue } from '../../../../services/rules/evaluate/evaluate.ts';
import { PAIR_LISTS, randomFields, TreeMaker } from '../../../helpers/expression-pairs.ts';
import { pairRows } from '../../../helpers/expression-rows.ts';
import { givenFields } from '../../../helpers/given-fields.ts';
import { Random } from '../../../helpers/random.ts';

const PHASE = { phase: 'compression' } as const;

test('each operator is true in at least 30 % of its uses', (t) => {
  const random = new Random(1);
  for (const operator of [...Object.keys(OPERATORS), 'in_list'] as (OperatorName | 'in_list')[]) {
    let uses = 0;
    let holds = 0;
    while (uses < 200) {
      const given = randomFields(random);
      const tree = new TreeMaker(random, given).comparison(operator === 'in_list' ? 'in' : operator);
      if (tree.op !== operator || !checkCondition(formatTree(tree), PHASE).valid) continue;
      const result = evaluateCondition(tree, givenFields(given, PAIR_LISTS));
      uses++;
      if (result.ok && result.value) holds++;
    }
    t.true(holds >= 60 && holds < uses, `${operator}: ${holds} of ${uses}`);
  }
});

test('a source means what its tree does, and most pairs are valid', (t) => {
  const random = new Random(2);
  let valid = 0;
  for (let count = 0; count < 600; count++) {
    const given = randomFields(random);
    const around = givenFields(given, PAIR_LISTS);
    const made = new TreeMaker(random, given);
    const [condition, value] = [made.condition(), made.value()];
    const [checked, computed] = [checkCondition(formatTree(condition), PHASE), checkValue(formatTree(value), PHASE)];
    if (checked.valid) {
      valid++;
      t.deepEqual(evaluateCondition(checked.tree, around), evaluateCondition(condition, around));
    }
    if (computed.valid) {
      valid++;
      t.deepEqual(evaluateValue(computed.tree, around), evaluateValue(value, around));
    }
  }
  t.true(valid > 1000);
});

test('rows for another evaluation are the same for the same seed, of both kinds, and seldom fail', (t) => {
  const rows = [...pairRows(3, 300)];
  t.deepEqual(rows, [...pairRows(3, 300)]);
  t.is(rows.length, 300);
  for (const kind of ['condition', 'value']) t.true(rows.filter((row) => row.kind === kind).length > 50);
  t.true(rows.filter(({ expect }) => 'failure' in expect).length < 100);
});
