// A library reads the databases in MaxMind's format as they were written.
import { readFileSync } from 'node:fs';
import test from 'ava';
import fc from 'fast-check';
import { Reader } from 'mmdb-lib';
import { geoipDatabases } from '../../../../../bin/lib/geoip/databases.ts';
import { MmdbWriter } from '../../../../../bin/lib/geoip/mmdb.ts';

const ABOUT = { type: 'made-up', description: 'of a test', built: new Date(0) };

test('each network has its record, and every other address none', (t) => {
  const networks = fc.uniqueArray(fc.integer({ min: 0, max: 2 ** 16 - 1 }), { minLength: 1, maxLength: 40 });
  fc.assert(
    fc.property(networks, fc.string({ maxLength: 300 }), (numbers, name) => {
      const writer = new MmdbWriter(['number', 'name']);
      // 10.x.y.0/24
      const addressOf = (number: number) => (10n << 24n) | (BigInt(number) << 8n);
      for (const number of numbers) writer.add({ address: addressOf(number), bits: 120 }, [number, name.slice(0, 200)]);
      const reader = new Reader(writer.file(ABOUT));
      const has = new Set(numbers);
      for (const number of [...numbers, ...numbers.map((one) => one ^ 1)]) {
        const record = reader.get(`10.${number >> 8}.${number & 255}.7`);
        const expected = { number, name: name.slice(0, 200).toWellFormed() };
        t.deepEqual(record as unknown, has.has(number) ? expected : null);
      }
      t.is(reader.get('2001:db8::1'), null);
    }),
    { numRuns: 30 },
  );
});

test('the databases of nodes have countries and systems of both kinds of addresses', async (t) => {
  const { country, asn } = await geoipDatabases();
  const countries = new Reader(readFileSync(country));
  const systems = new Reader(readFileSync(asn));
  t.deepEqual(countries.get('193.99.144.80') as unknown, { country_code: 'DE' });
  t.is(countries.get('127.0.0.1'), null);
  for (const address of ['8.8.8.8', '2001:4860:4860::8888']) {
    const system = systems.get(address) as unknown as Record<string, unknown>;
    t.is(system.autonomous_system_number, 15_169);
    t.regex(String(system.autonomous_system_organization), /google/i);
  }
});
