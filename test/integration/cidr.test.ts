// Our addresses and PostgreSQL's: what we accept, the database stores as the same range, orders and compares alike.
import test from 'ava';
import fc from 'fast-check';
import pg from 'pg';
import { type Cidr, compareCidr, contains, formatCidr, overlaps, parseCidr } from '../../contract/scalars/cidr.ts';
import { createTestDatabase, type TestDatabase } from '../helpers/servers.ts';

let database: TestDatabase;
let client: pg.Client;

test.before('connect', async () => {
  database = await createTestDatabase();
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
});
test.after.always('disconnect', async () => {
  await client?.end();
  await database?.drop();
});

const v4 = fc
  .tuple(fc.array(fc.nat(255), { minLength: 4, maxLength: 4 }), fc.nat(32))
  .map(([octets, prefix]) => `${octets.join('.')}/${prefix}`);
const group = fc.oneof(fc.constant(0), fc.constant(0xffff), fc.nat(0xffff)).map((value) => value.toString(16));
const v6 = fc
  .tuple(fc.array(group, { minLength: 8, maxLength: 8 }), fc.nat(128))
  // IPv4-mapped ones may not be wider than the mapped range.
  .filter(([groups, prefix]) => prefix >= 96 || !/^(0:){5}ffff:/.test(groups.join(':')))
  .map(([groups, prefix]) => `${groups.join(':')}/${prefix}`);
// Ranges near each other, so that they meet.
const near = fc
  .tuple(fc.nat(3), fc.integer({ min: 28, max: 32 }))
  .map(([low, prefix]) => `192.0.2.${low * 5}/${prefix}`);
const texts = fc.sample(fc.oneof(v4, v6, near), { numRuns: 6000, seed: 7 });
const mixed = fc.sample(fc.string({ unit: fc.constantFrom(...'0123456789abf:./'), maxLength: 24 }), {
  numRuns: 100_000,
  seed: 11,
});

/** The mapped form is the IPv4 one here, and an IPv6 one in the database. */
const isUnmapped = (text: string, cidr: Cidr) => text.includes(':') && cidr.family === 4;

test.serial('the network is the same', async (t) => {
  const cases = texts
    .map((text) => ({ text, cidr: parseCidr(text)! }))
    .filter(({ text, cidr }) => !isUnmapped(text, cidr));
  t.true(cases.length > 5000);
  const { rows } = await client.query(
    `select t.given, t.ours from unnest($1::text[], $2::text[]) as t(given, ours)
      where network(t.given::inet) <> t.ours::cidr or t.ours::cidr <> t.ours::inet`,
    [cases.map(({ text }) => text), cases.map(({ cidr }) => formatCidr(cidr))],
  );
  t.deepEqual(rows, []);
});

test.serial('whatever is accepted is stored, and read back as itself', async (t) => {
  const accepted = [...mixed, ...texts].filter((text) => parseCidr(text) !== null);
  t.true(accepted.length > 6000);
  const ours = accepted.map((text) => formatCidr(parseCidr(text)!));
  const { rows } = await client.query<{ stored: string }>(
    'select c::cidr::text as stored from unnest($1::text[]) with ordinality as t(c, n) order by n',
    [ours],
  );
  t.deepEqual(
    rows.map(({ stored }) => formatCidr(parseCidr(stored)!)),
    ours,
  );
});

test.serial('containing, overlapping and order are the same', async (t) => {
  const cidrs = texts.map((text) => parseCidr(text)!);
  const pairs = cidrs.map((a, index) => [a, cidrs[(index * 7 + 1) % cidrs.length]!] as const);
  const { rows } = await client.query(
    `select a::cidr >>= b::cidr as contains, a::cidr && b::cidr as overlaps,
       case when a::cidr < b::cidr then -1 when a::cidr > b::cidr then 1 else 0 end as "order"
     from unnest($1::text[], $2::text[]) with ordinality as t(a, b, n) order by n`,
    [pairs.map(([a]) => formatCidr(a)), pairs.map(([, b]) => formatCidr(b))],
  );
  const expected = pairs.map(([a, b]) => ({
    contains: contains(a, b),
    overlaps: overlaps(a, b),
    order: Math.sign(compareCidr(a, b)) + 0,
  }));
  t.true(expected.filter(({ overlaps: meet }) => meet).length > 100);
  t.deepEqual(rows, expected);
});
