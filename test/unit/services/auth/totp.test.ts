import test from 'ava';
import { newTotpSecret, stepOf, totpUri } from '../../../../services/auth/totp.ts';

const SECRET = Buffer.from('12345678901234567890');

// RFC 6238, appendix B, SHA-1: the last six of its eight digits.
for (const [seconds, code] of [
  [59, '287082'],
  [1_111_111_109, '081804'],
  [1_111_111_111, '050471'],
  [1_234_567_890, '005924'],
  [2_000_000_000, '279037'],
  [20_000_000_000, '353130'],
] as const) {
  test(`at ${seconds} s the code is ${code}`, (t) => {
    const step = Math.floor(seconds / 30);
    const at = (offset: number) => stepOf(SECRET, code, new Date((seconds + offset * 30) * 1000));
    t.is(at(0), step);
    t.is(at(1), step, 'one step later');
    t.is(at(-1), step, 'one step earlier');
    t.is(at(2), null);
    t.is(at(-2), null);
  });
}

test('what is no code of the secret belongs to no step', (t) => {
  for (const code of ['287083', '', '28708', '2870820', 'abcdef']) t.is(stepOf(SECRET, code, new Date(59_000)), null);
  t.is(stepOf(Buffer.from('09876543210987654321'), '287082', new Date(59_000)), null);
});

test('a part of a larger buffer is the secret alone', (t) => {
  const larger = Buffer.concat([Buffer.from('xx'), SECRET, Buffer.from('yy')]).subarray(2, 22);
  t.is(stepOf(larger, '287082', new Date(59_000)), 1);
});

test('the address for an app names issuer, account and the secret in base32', (t) => {
  const uri = new URL(totpUri(SECRET, 'me+x@example.com'));
  t.is(decodeURIComponent(uri.pathname), '/Edge Delivery Console:me+x@example.com');
  t.is(uri.searchParams.get('secret'), 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ');
  t.deepEqual([uri.searchParams.get('digits'), uri.searchParams.get('period')], ['6', '30']);
});

test('secrets have 160 bits and differ', (t) => {
  t.is(newTotpSecret().length, 20);
  t.notDeepEqual(newTotpSecret(), newTotpSecret());
});
