// Expressions that documents show.
import test from 'ava';
import { checkCondition, checkValue } from '../../../../contract/expression/expression.ts';
import { DOCUMENTS, read } from '../../../helpers/documents.ts';

const text = read('docs/expressions.md');
const all = DOCUMENTS.map(read).join('\n');
const linesOf = (kind: string) =>
  [...all.matchAll(new RegExp(`^\`\`\`${kind}\\n([^\`]*)^\`\`\`$`, 'gm'))].flatMap(([, lines]) =>
    lines!.trim().split('\n'),
  );

test('every expression that a document shows is valid', (t) => {
  const options = { phase: 'redirect' } as const;
  const shown = [
    ...linesOf('expression').map((line) => ({ line, result: checkCondition(line, options) })),
    ...linesOf('value').map((line) => ({ line, result: checkValue(line, options) })),
  ];
  t.true(shown.length > 15);
  t.deepEqual(
    shown.filter(({ result }) => !result.valid).map(({ line }) => line),
    [],
  );
});

test('the answer that it shows is the answer', (t) => {
  const answer = JSON.parse(/^# (\{.*\})$/m.exec(text)![1]!);
  const { expression, phase } = JSON.parse(/POST \/rules\/validate '(.*)'/.exec(text)![1]!);
  const result = checkCondition(expression, { phase });
  t.deepEqual(answer, { valid: false, ...(result.valid ? {} : result.error) });
});
