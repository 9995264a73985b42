import test from 'ava';
import fc from 'fast-check';
import ipaddr from 'ipaddr.js';
import {
  type Cidr,
  compareCidr,
  contains,
  countedAddress,
  formatAddress,
  formatCidr,
  isSingleAddress,
  normaliseCidrs,
  overlaps,
  parseAddress,
  parseCidr,
} from '../../../../contract/scalars/cidr.ts';

const canonical = (text: string) => {
  const cidr = parseCidr(text);
  return cidr && formatCidr(cidr);
};

const ACCEPTED: readonly (readonly [string, string, string])[] = [
  ['a single address means /32', '192.0.2.1', '192.0.2.1/32'],
  ['a single address means /128', '2001:db8::1', '2001:db8::1/128'],
  ['host bits are cleared', '192.0.2.77/24', '192.0.2.0/24'],
  ['host bits are cleared in IPv6', '2001:db8:1:2:3::4/48', '2001:db8:1::/48'],
  ['IPv6 is lowercased', '2001:DB8::ABCD', '2001:db8::abcd/128'],
  ['IPv6 is compressed at the first of the longest runs', '1:0:0:2:0:0:3:4', '1::2:0:0:3:4/128'],
  ['a lone zero group is not compressed', '1:0:2:3:4:5:6:7', '1:0:2:3:4:5:6:7/128'],
  ['leading zeros of IPv6 groups go', '2001:0db8:0000::0001', '2001:db8::1/128'],
  ['an IPv4-mapped address counts as IPv4', '::ffff:192.0.2.1', '192.0.2.1/32'],
  ['an IPv4-mapped address in hexadecimal counts as IPv4', '::FFFF:c000:0201', '192.0.2.1/32'],
  ['an IPv4-mapped range counts as IPv4', '::ffff:192.0.2.1/120', '192.0.2.0/24'],
  ['everything mapped is everything of IPv4', '::ffff:0:0/96', '0.0.0.0/0'],
  ['a range around the mapped ones stays IPv6', '::fffe:0:0/95', '::fffe:0:0/95'],
  ['IPv4-compatible addresses stay IPv6', '::192.0.2.1/95', '::/95'],
  ['an IPv4 tail is written in hexadecimal', '64:ff9b::192.0.2.1', '64:ff9b::c000:201/128'],
  ['zero lengths', '::/0', '::/0'],
  ['the unspecified address', '::', '::/128'],
  ['eight groups', '1:2:3:4:5:6:7:8', '1:2:3:4:5:6:7:8/128'],
  ['a double colon at the end', '1:2:3:4:5:6:7::', '1:2:3:4:5:6:7:0/128'],
];

for (const [title, text, expected] of ACCEPTED) {
  test(`${title}: ${text}`, (t) => t.is(canonical(text), expected));
}

const REFUSED: readonly string[] = [
  '',
  ' ',
  '1.2.3',
  '1.2.3.4.5',
  '1.2.3.256',
  '01.2.3.4',
  '1.2.3.04',
  '1.2.3.4/33',
  '1.2.3.4/032',
  '1.2.3.4/-1',
  '1.2.3.4/',
  '1.2.3.4/24/24',
  '1.2.3.4 ',
  ' 1.2.3.4',
  '1.2.3.4\n',
  '0x7f.0.0.1',
  '127.1',
  '2130706433',
  '１.2.3.4',
  'fe80::1%eth0',
  'fe80::1%25eth0',
  '::1/129',
  '::1/0128',
  '1::2::3',
  ':::',
  ':1:2:3:4:5:6:7',
  '1:2:3:4:5:6:7:',
  '1:2:3:4:5:6:7',
  '1:2:3:4:5:6:7:8:9',
  '1:2:3:4:5:6:7::8',
  '12345::',
  'g::',
  '::ffff:01.2.3.4',
  // Wider than the mapped range: no client with an IPv4 address would match.
  '::ffff:1.2.3.4/95',
  '::ffff:0:0/95',
  '::FFFF:0102:0304/80',
  '0:0:0:0:0:ffff::/32',
  '::ffff:255.255.255.255/0',
  '::1.2.3',
  '1.2.3.4::',
  '[::1]',
  'localhost',
  '*',
  `1.2.3.4/${'1'.repeat(100)}`,
];

for (const text of REFUSED) {
  test(`refused: ${JSON.stringify(text)}`, (t) => t.is(parseCidr(text), null));
}

test('an address is no CIDR with its prefix written', (t) => {
  t.is(parseAddress('192.0.2.1/32'), null);
  t.is(formatAddress(parseAddress('192.0.2.1')!), '192.0.2.1');
  t.true(isSingleAddress(parseAddress('::1')!));
  t.false(isSingleAddress(parseCidr('::1/127')!));
});

const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
// Zero and 0xffff groups often: they decide compression and mapping.
const v6Bytes = fc
  .array(fc.oneof(fc.constant(0), fc.constant(0xffff), fc.integer({ min: 0, max: 0xffff })), {
    minLength: 8,
    maxLength: 8,
  })
  .map((groups) => groups.flatMap((group) => [group >> 8, group & 255]));
const anyAddress = fc.oneof(
  bytes(4).map((part) => ipaddr.fromByteArray([...part]).toString()),
  v6Bytes.map((part) => (ipaddr.fromByteArray(part) as ipaddr.IPv6).toNormalizedString()),
);
const anyText = anyAddress.chain((address) =>
  fc.integer({ min: 0, max: address.includes(':') ? 128 : 32 }).map((prefix) => `${address}/${prefix}`),
);
const mappedText = bytes(4).chain((part) =>
  fc.integer({ min: 0, max: 128 }).map((prefix) => `::ffff:${part.join('.')}/${prefix}`),
);
/** Of an IPv4-mapped address and shorter than the range of all of them. */
function isWiderThanMapped(text: string): boolean {
  const [address, prefix] = ipaddr.parseCIDR(text);
  return address.kind() === 'ipv6' && (address as ipaddr.IPv6).isIPv4MappedAddress() && prefix < 96;
}
const anyCidrText = anyText.filter((text) => !isWiderThanMapped(text));

/** The network as ipaddr.js sees it, mapped ranges as IPv4. */
function reference(text: string): string {
  const [address, prefix] = ipaddr.parseCIDR(text);
  const network =
    address.kind() === 'ipv4'
      ? ipaddr.IPv4.networkAddressFromCIDR(text)
      : ipaddr.IPv6.networkAddressFromCIDR(`${(address as ipaddr.IPv6).toNormalizedString()}/${prefix}`);
  if (network.kind() === 'ipv6' && prefix >= 96 && (network as ipaddr.IPv6).isIPv4MappedAddress()) {
    return `${(network as ipaddr.IPv6).toIPv4Address()}/${prefix - 96}`;
  }
  return network.kind() === 'ipv4' ? `${network}/${prefix}` : `${(network as ipaddr.IPv6).toRFC5952String()}/${prefix}`;
}

test('agrees with ipaddr.js about every address and range', (t) => {
  fc.assert(
    fc.property(anyCidrText, (text) => canonical(text) === reference(text)),
    { numRuns: 5000 },
  );
  t.pass();
});

test('of the texts that are ranges, those of mapped addresses that are wider than all of them are refused', (t) => {
  fc.assert(
    fc.property(fc.oneof(anyText, mappedText), (text) => (parseCidr(text) === null) === isWiderThanMapped(text)),
    { numRuns: 5000 },
  );
  t.pass();
});

test('the canonical text is its own canonical text', (t) => {
  fc.assert(
    fc.property(anyCidrText, (text) => canonical(canonical(text)!) === canonical(text)),
    { numRuns: 2000 },
  );
  t.pass();
});

test('never throws and never accepts what it would not write, whatever the text', (t) => {
  const characters = fc.constantFrom(...'0123456789abcdefABCDEF:./%x[] -');
  fc.assert(
    fc.property(fc.string({ unit: characters, maxLength: 45 }), (text) => {
      const cidr = parseCidr(text);
      return cidr === null || formatCidr(parseCidr(formatCidr(cidr))!) === formatCidr(cidr);
    }),
    { numRuns: 20_000 },
  );
  t.pass();
});

/** First and last address as numbers. */
function span({ family, value, prefix }: Cidr): [bigint, bigint] {
  return [value, value + (1n << BigInt((family === 4 ? 32 : 128) - prefix)) - 1n];
}

test('containing and overlapping are those of intervals', (t) => {
  // Few high bits and long prefixes, so that ranges meet.
  const near = fc
    .tuple(fc.integer({ min: 0, max: 255 }), fc.integer({ min: 22, max: 32 }))
    .map(([low, prefix]) => parseCidr(`192.0.2.${low}/${prefix}`)!);
  const any = fc.oneof(
    near,
    anyCidrText.map((text) => parseCidr(text)!),
  );
  fc.assert(
    fc.property(any, any, (a, b) => {
      const [[aFirst, aLast], [bFirst, bLast]] = [span(a), span(b)];
      const same = a.family === b.family;
      const order = compareCidr(a, b);
      return (
        contains(a, b) === (same && aFirst <= bFirst && bLast <= aLast) &&
        overlaps(a, b) === (same && aFirst <= bLast && bFirst <= aLast) &&
        (order === 0) === (formatCidr(a) === formatCidr(b)) &&
        Math.sign(order) === -Math.sign(compareCidr(b, a))
      );
    }),
    { numRuns: 5000 },
  );
  t.pass();
});

test('a list becomes canonical, distinct and sorted, or names its first bad text', (t) => {
  t.deepEqual(normaliseCidrs(['2001:DB8::/32', '10.0.0.1', '10.0.0.1/32', '10.0.0.0/8', '::ffff:10.0.0.1']), {
    cidrs: ['10.0.0.0/8', '10.0.0.1/32', '2001:db8::/32'],
    invalid: null,
  });
  t.is(normaliseCidrs(['10.0.0.1', 'x', 'y']).invalid, 1);
});

for (const [ip, counted] of [
  ['192.0.2.1', '192.0.2.1'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8::1', '2001:db8::/64'],
  ['::1', '::/64'],
  ['64:ff9b::1.2.3.4', '64:ff9b::/64'],
  [null, 'unknown'],
] as const) {
  test(`a client at ${ip} counts as ${counted}`, (t) => {
    t.is(countedAddress(ip), counted);
  });
}
