// What docs/expressions.md shows.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { root } from '../../../../bin/lib/root.ts';
import { checkCondition, checkValue } from '../../../../contract/expression/expression.ts';

const text = readFileSync(join(root, 'docs/expressions.md'), 'utf8');
const linesOf = (kind: string) =>
  [...text.matchAll(new RegExp(`^\`\`\`${kind}\\n([^\`]*)^\`\`\`$`, 'gm'))].flatMap(([, lines]) =>
    lines!.trim().split('\n'),
  );

test('every expression that the document shows is valid', (t) => {
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
