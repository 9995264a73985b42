import test from 'ava';
import { errorCodeOf } from '../../../../contract/errors.ts';
import { parseIdempotencyKey } from '../../../../services/api-gateway/idempotency-key.ts';

for (const [header, key] of [
  ['a', 'a'],
  ['8e03978e-40d5-43dd-bc93-6894a57f9324', '8e03978e-40d5-43dd-bc93-6894a57f9324'],
  ['"a"', 'a'],
  ['"a \\"quoted\\" \\\\ key"', 'a "quoted" \\ key'],
  ['with spaces, and = signs', 'with spaces, and = signs'],
  ['a"b', 'a"b'],
  ['  padded  ', 'padded'],
  ['x'.repeat(255), 'x'.repeat(255)],
  [`"${'x'.repeat(255)}"`, 'x'.repeat(255)],
] as const) {
  test(`accepts ${header.slice(0, 40)} (${header.length})`, (t) => {
    t.is(parseIdempotencyKey(header), key);
  });
}

for (const header of [
  '',
  '   ',
  '""',
  '"',
  '"open',
  '"a"b',
  '"a";p=1',
  '"a\\b"',
  '"tab\t"',
  'tab\tinside',
  'ünicode',
  'x'.repeat(256),
  `"${'x'.repeat(256)}"`,
  'del\u007f',
]) {
  test(`refuses ${JSON.stringify(header.slice(0, 40))} (${header.length})`, (t) => {
    const error = t.throws(() => parseIdempotencyKey(header));
    t.is(errorCodeOf(error), 'IDEMPOTENCY_KEY_INVALID');
  });
}
