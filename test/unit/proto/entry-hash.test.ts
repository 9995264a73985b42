// Golden values: nodes hold sums made by earlier versions of either side, so these may never change.
import test from 'ava';
import fc from 'fast-check';
import { BUCKET_COUNT, bodyHash, bucketOf, entryHash, fromSum, moveSum, toSum } from '../../../proto/entry-hash.ts';

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

const GOLDEN_PLAIN = 'a81d77f5a1c420e588f0e505ad5499321f1c7fa88b7bad2249ceec57fa5c8637';
const GOLDEN_FEATURES = '24d17bbadfa93a69e4d21f0e342a70d58157c67b4bb808aa416fac234dd114c5';
const GOLDEN_EMPTY = '8d80becd0d38f3cae1628b9711f96556e7a6216e64d483fe76e8179a75efb1a1';
const GOLDEN_UTF8 = 'f4e32b456b409840a5e71fa0e74577d482107d8b3a59f25e3cb12dea11167cfb';

test('hashes of entries are what they always were', (t) => {
  const body = bodyHash(Buffer.from('body'));
  t.is(hex(body), '230d8358dc8e8890b4c58deeb62912ee2f20357ae92a5cc861b98e68fe31acb5');
  t.is(hex(entryHash('site', 'a', body, [])), GOLDEN_PLAIN);
  t.is(hex(entryHash('site', 'a', body, ['bans-v1', 'domains-v2'])), GOLDEN_FEATURES);
  t.is(hex(entryHash('client-ip', '', bodyHash(new Uint8Array()), [])), GOLDEN_EMPTY);
  t.is(hex(entryHash('site', 'ä', body, [])), GOLDEN_UTF8);
});

test('buckets of entries are what they always were', (t) => {
  t.is(bucketOf('site', 'a'), 4037);
  t.is(bucketOf('client-ip', ''), 1791);
  t.is(BUCKET_COUNT, 4096);
});

test('kind, id, body and features cannot be confused', (t) => {
  const body = bodyHash(Buffer.from('x'));
  const hashes = [
    entryHash('ab', 'c', body, []),
    entryHash('a', 'bc', body, []),
    entryHash('ab', 'c', body, ['x']),
    entryHash('ab', 'c', bodyHash(Buffer.from('y')), []),
  ].map(hex);
  t.is(new Set(hashes).size, hashes.length);
});

test('sums do not depend on the order, and taking out undoes putting in', (t) => {
  const hashes = fc.array(fc.uint8Array({ minLength: 32, maxLength: 32 }), { maxLength: 8 });
  fc.assert(
    fc.property(hashes, hashes, (first, second) => {
      const sum = moveSum(0n, [], [...first, ...second]);
      t.is(moveSum(0n, [], [...second.toReversed(), ...first]), sum);
      t.is(moveSum(sum, second, []), moveSum(0n, [], first));
      t.is(toSum(fromSum(sum)), sum);
      t.is(fromSum(sum).length, 32);
    }),
  );
});
