// Databases are written in the form in which the edge's own tests read them.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import fc from 'fast-check';
import { builtAt, systemsDatabase } from '../../../../../bin/lib/geoip/databases.ts';
import { MmdbWriter } from '../../../../../bin/lib/geoip/mmdb.ts';
import { networksOf, readRanges } from '../../../../../bin/lib/geoip/ranges.ts';
import { root } from '../../../../../bin/lib/root.ts';

const BUILT = new Date('2026-06-17T19:00:00Z');
const v4 = (text: string): bigint => text.split('.').reduce((sum, part) => sum * 256n + BigInt(part), 0n);

/** What agents/caddy/features/geo/testdata/asn.mmdb is made of. */
const LISTS = {
  32: [
    [v4('198.51.100.0'), v4('198.51.100.130'), 64500, '"Example, ""The"" Net"'],
    // Overlaps the one before, which counts.
    [v4('198.51.100.128'), v4('198.51.100.255'), 64501, 'Other'],
    [v4('203.0.113.7'), v4('203.0.113.7'), 4_200_000_000, `Süd ${'x'.repeat(276)}`],
    [v4('203.0.113.8'), v4('203.0.113.8'), 64500, '"Example, ""The"" Net"'],
  ],
  128: [[0x2001_0db8n << 96n, (0x2001_0db9n << 96n) - 1n, 64502, 'Six']],
};

const csv = (rows: readonly (readonly (bigint | number | string)[])[]): string =>
  rows.map((row) => `${row.join(',')}\n`).join('');

test('the database of autonomous systems is the one that the edge is tested with', (t) => {
  const file = join(root, 'agents', 'caddy', 'features', 'geo', 'testdata', 'asn.mmdb');
  const made = systemsDatabase({ 32: csv(LISTS[32]), 128: csv(LISTS[128]) }, BUILT);
  if (!existsSync(file)) {
    writeFileSync(file, made);
    t.fail('it was missing and has been written');
  }
  t.deepEqual(made, readFileSync(file));
});

test('a row may have quotes; one without a range is refused with its line', (t) => {
  const rows = [...readRanges('1,2,3,"a, ""b"""\r\n4,5,,\n6,7,8,plain')];
  t.deepEqual(
    rows.map(({ columns }) => columns),
    [
      ['3', 'a, "b"'],
      ['', ''],
      ['8', 'plain'],
    ],
  );
  t.throws(() => [...readRanges('1,2,3\nx,2,3\n')], { message: /^line 2 has no valid range/ });
  t.throws(() => [...readRanges('1,2,"open\n')], { message: /^line 1 has no valid range/ });
});

test('networks make up a range, in order, and none could be larger', (t) => {
  const width = 32;
  const bound = fc.bigInt({ min: 0n, max: 2n ** 32n - 1n });
  fc.assert(
    fc.property(bound, bound, (one, other) => {
      const [first, last] = one < other ? [one, other] : [other, one];
      const networks = [...networksOf(first, last, width)];
      let next = first;
      for (const { address, bits } of networks) {
        const size = 1n << BigInt(width - bits);
        if (address !== next || address % size !== 0n) return false;
        next = address + size;
      }
      return next === last + 1n && networks.length <= 2 * width;
    }),
  );
  t.deepEqual([...networksOf(0n, 2n ** 128n - 1n, 128)], [{ address: 0n, bits: 0 }]);
});

test('two records for an address are refused', (t) => {
  const writer = new MmdbWriter(['a']);
  writer.add({ address: 0n, bits: 64 }, [1]);
  t.throws(() => writer.add({ address: 0n, bits: 64 }, [2]), { message: 'two records for 0' });
  t.throws(() => writer.add({ address: 1n, bits: 128 }, [2]), { message: 'two records for 1' });
  writer.add({ address: 1n << 127n, bits: 128 }, [2]);
  t.throws(() => writer.add({ address: 1n << 127n, bits: 2 }, [2]), { message: /^two records/ });
});

test('the time of a database is that of the version', (t) => {
  t.is(builtAt('2.3.2026061719').toISOString(), BUILT.toISOString());
  t.throws(() => builtAt('2.3.0'));
  t.throws(() => builtAt('2.3.2026991719'));
});
