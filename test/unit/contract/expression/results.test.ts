import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { root } from '../../../../bin/lib/root.ts';
import { isUsable, type ValueUse } from '../../../../contract/expression/results.ts';

const { rows } = JSON.parse(readFileSync(join(root, 'test/vectors/value-results.json'), 'utf8')) as {
  rows: { use: ValueUse; result: string; usable: boolean }[];
};

test('targets have one slash in front or a host, headers no control characters', (t) => {
  for (const { use, result, usable } of rows) t.is(isUsable(use, result), usable, `${use} ${result}`);
});

test('a header has at most 4096 bytes', (t) => {
  t.true(isUsable('header', 'a'.repeat(4096)));
  t.false(isUsable('header', 'a'.repeat(4097)));
});

test('the length of a result bounds what judging it costs', (t) => {
  t.true(isUsable('redirect', `/${'a'.repeat(8191)}`));
  t.false(isUsable('redirect', `https://${'a:'.repeat(4000)}`));
  t.false(isUsable('redirect', `https://[${':'.repeat(8000)}`));
});
