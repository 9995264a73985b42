import test from 'ava';
import fc from 'fast-check';
import { type Cidr, endOf, formatCidr, parseCidr } from '../../../../agents/edge/bans/cidr.ts';
import { resolveOverlaps, type TimedCidr } from '../../../../agents/edge/nft/overlaps.ts';

function timed(text: string, remainingMs: number): TimedCidr {
  return { cidr: parseCidr(text)!, remainingMs };
}

function texts(prefixes: TimedCidr[]): string[] {
  return resolveOverlaps(prefixes).map(
    ({ start, end, remainingMs }) => `${start.toString(16)}-${end.toString(16)} ${remainingMs}`,
  );
}

test('disjoint prefixes stay as they are, in order', (t) => {
  t.deepEqual(texts([timed('10.0.1.0/24', 5), timed('10.0.0.0/25', 3)]), ['a000000-a00007f 3', 'a000100-a0001ff 5']);
});

test('a shorter ban inside a longer one disappears', (t) => {
  t.deepEqual(texts([timed('10.0.0.0/16', 9), timed('10.0.1.0/24', 5)]), ['a000000-a00ffff 9']);
});

test('a longer ban inside a shorter one splits it', (t) => {
  t.deepEqual(texts([timed('10.0.0.0/24', 5), timed('10.0.0.64/26', 9)]), [
    'a000000-a00003f 5',
    'a000040-a00007f 9',
    'a000080-a0000ff 5',
  ]);
});

test('a longer ban at the beginning or end of a shorter one leaves one rest', (t) => {
  t.deepEqual(texts([timed('10.0.0.0/24', 5), timed('10.0.0.0/25', 9)]), ['a000000-a00007f 9', 'a000080-a0000ff 5']);
  t.deepEqual(texts([timed('10.0.0.0/24', 5), timed('10.0.0.128/25', 9)]), ['a000000-a00007f 5', 'a000080-a0000ff 9']);
});

test('the same prefix twice lasts as long as the longer', (t) => {
  t.deepEqual(texts([timed('10.0.0.0/24', 5), timed('10.0.0.0/24', 9), timed('10.0.0.0/24', 1)]), [
    'a000000-a0000ff 9',
  ]);
});

test('ends of the address space are handled', (t) => {
  t.deepEqual(texts([timed('255.255.0.0/16', 1), timed('255.255.255.0/24', 2)]), [
    'ffff0000-fffffeff 1',
    'ffffff00-ffffffff 2',
  ]);
  t.deepEqual(texts([timed('0.0.0.0/16', 1), timed('0.0.0.0/24', 2)]), ['0-ff 2', '100-ffff 1']);
});

test('property: every address is banned exactly as long as the longest prefix that covers it, and ranges are disjoint', (t) => {
  const prefix = fc
    .record({
      value: fc.integer({ min: 0, max: 255 }),
      bits: fc.integer({ min: 24, max: 31 }),
      remainingMs: fc.integer({ min: 1, max: 5 }),
    })
    .map(({ value, bits, remainingMs }) => timed(`10.9.8.${value}/${bits}`, remainingMs));
  const start = parseCidr('10.9.8.0/24')!.start;
  fc.assert(
    fc.property(fc.array(prefix, { maxLength: 25 }), (prefixes) => {
      const ranges = resolveOverlaps(prefixes);
      for (let index = 1; index < ranges.length; index++) {
        const [before, range] = [ranges[index - 1]!, ranges[index]!];
        if (range.start <= before.end) return false;
        if (range.start === before.end + 1n && range.remainingMs === before.remainingMs) return false;
      }
      for (let address = start; address <= start + 255n; address++) {
        const covering = prefixes.filter(({ cidr }: { cidr: Cidr }) => cidr.start <= address && address <= endOf(cidr));
        const expected = covering.length === 0 ? undefined : Math.max(...covering.map((item) => item.remainingMs));
        if (ranges.find((range) => range.start <= address && address <= range.end)?.remainingMs !== expected)
          return false;
      }
      return true;
    }),
    { numRuns: 300 },
  );
  t.pass();
});

for (const [text, expected] of [
  ['192.0.2.1', '192.0.2.1/32'],
  ['192.0.2.77/24', '192.0.2.0/24'],
  ['2001:DB8::1', '2001:db8::1/128'],
  ['2001:db8:1:2:3:4:5:6/64', '2001:db8:1:2::/64'],
  ['::ffff:192.0.2.9', '192.0.2.9/32'],
  ['::ffff:192.0.2.9/120', '192.0.2.0/24'],
  ['::', '::/128'],
  ['1:0:0:2:0:0:0:3', '1:0:0:2::3/128'],
  ['::/0', '::/0'],
  ['::ffff:0:0/96', '0.0.0.0/0'],
  ['::fffe:0:0/95', '::fffe:0:0/95'],
] as const) {
  test(`${text} is ${expected}`, (t) => {
    t.is(formatCidr(parseCidr(text)!), expected);
  });
}

for (const text of [
  '',
  '1.2.3',
  '1.2.3.4/33',
  '1.2.3.4/-1',
  '1.2.3.4/08',
  '::/129',
  'fe80::1%eth0',
  '1.2.3.4/24; flush ruleset',
  '1.2.3.4\n',
  'x',
  '01.2.3.4',
  '::ffff:1.2.3.4/95',
  '::ffff:102:304/80',
  '::ffff:0:0/0',
]) {
  test(`no address: ${JSON.stringify(text)}`, (t) => {
    t.is(parseCidr(text), undefined);
  });
}

test('property: what is written is read back as the same prefix', (t) => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: (1n << 128n) - 1n }), fc.integer({ min: 0, max: 128 }), (value, bits) => {
      const host = BigInt(128 - bits);
      const cidr: Cidr = { family: 6, start: (value >> host) << host, bits };
      const back = parseCidr(formatCidr(cidr));
      const mapped = cidr.start >> 32n === 0xffffn && bits >= 96;
      return mapped ? back?.family === 4 : back?.start === cidr.start && back.bits === bits;
    }),
  );
  t.pass();
});
