// Parts that DNS adapters share: texts of values, plans of changes, pages and pauses.
import test from 'ava';
import fc from 'fast-check';
import { AdapterError, type Change } from '../../../../services/dns/adapters/adapter.ts';
import { adapterKinds } from '../../../../services/dns/adapters/catalog.ts';
import { applyChanges } from '../../../../services/dns/adapters/kit/apply.ts';
import { retryAfter } from '../../../../services/dns/adapters/kit/http.ts';
import { readPages } from '../../../../services/dns/adapters/kit/pages.ts';
import { planRecords, type StoredRecord } from '../../../../services/dns/adapters/kit/records.ts';
import { planSets } from '../../../../services/dns/adapters/kit/set-plan.ts';
import { canonicalName, canonicalValue, quoteTxt, unquoteTxt } from '../../../../services/dns/adapters/kit/values.ts';
import { checkCredentials, joinCredentials, splitCredentials } from '../../../../services/dns/adapters/stored.ts';

const limits = { minTtl: 60, maxTtl: 86_400 };
const stored = (id: string, value: string, ttl = 600): StoredRecord => {
  return { id, name: 'a.example.org', type: 'A', line: 'default', ttl, value };
};
const set = (values: string[], ttl = 600): Change => {
  return { action: 'set', name: 'a.example.org', type: 'A', ttl, values };
};

test('a TXT text comes back from its quoted form, however long and in whatever script', (t) => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 600 }), (text) => {
      t.is(unquoteTxt(quoteTxt(text)), text);
    }),
    { numRuns: 300 },
  );
  t.is(quoteTxt('a"b\\c'), '"a\\"b\\\\c"');
  t.is(unquoteTxt('"one " "two"'), 'one two');
  t.is(unquoteTxt('plain'), 'plain');
});

test('names and values of providers become canonical', (t) => {
  t.is(canonicalName('Bücher.Example.ORG.'), 'xn--bcher-kva.example.org');
  t.is(canonicalName('\\052.example.org'), '*.example.org');
  t.is(canonicalName('*.bücher.example.org'), '*.xn--bcher-kva.example.org');
  t.is(canonicalValue('AAAA', '2001:DB8:0:0::1'), '2001:db8::1');
  t.is(canonicalValue('CNAME', 'Target.Example.org.'), 'target.example.org');
});

test('a set is replaced with the fewest changes, and values come before others go', (t) => {
  const now = [stored('1', '192.0.2.1'), stored('2', '192.0.2.2'), stored('3', '192.0.2.3')];
  t.deepEqual(
    planRecords(set(['192.0.2.1', '192.0.2.9']), now, limits),
    [
      { do: 'update', id: '2', record: { ...stored('', '192.0.2.9'), id: undefined } },
      { do: 'remove', id: '3' },
    ].map((one) => JSON.parse(JSON.stringify(one))),
  );
  t.deepEqual(planRecords(set(['192.0.2.1', '192.0.2.2', '192.0.2.3']), now, limits), []);
  t.like(planRecords(set(['192.0.2.1']), [stored('1', '192.0.2.1', 300)], limits), [{ do: 'update', id: '1' }]);
  // Two records with the same value are one too many.
  t.deepEqual(planRecords(set(['192.0.2.1']), [stored('1', '192.0.2.1'), stored('2', '192.0.2.1')], limits), [
    { do: 'remove', id: '2' },
  ]);
});

test('changes of one set are put together, and a set that is right is left alone', (t) => {
  const before = { name: 'a.example.org', type: 'A', ttl: 600, values: ['192.0.2.1'] };
  const now = new Map([['a.example.org A default', before]]);
  t.deepEqual(planSets([set(['192.0.2.1'])], now, limits), []);
  const append: Change = { action: 'append', name: 'a.example.org', type: 'A', ttl: 60, values: ['192.0.2.2'] };
  t.like(planSets([append], now, limits), [
    { after: { ttl: 600, values: ['192.0.2.1', '192.0.2.2'] }, isMerged: true },
  ]);
  const gone: Change = { action: 'delete', name: 'a.example.org', type: 'A' };
  t.like(planSets([append, gone], now, limits), [{ after: null }]);
});

test('a list that changes while it is read is not believed', async (t) => {
  const pages = [
    ['a', 'b'],
    ['b', 'c'],
  ];
  const read = async (page: number) => ({ items: pages[page] ?? [], total: 4 });
  await t.throwsAsync(
    readPages((item: string) => item, read),
    { message: /changed meanwhile/ },
  );
  const right = async (page: number) => ({ items: [['a', 'b'], ['c']][page] ?? [], total: 3 });
  t.deepEqual(await readPages((item: string) => item, right), ['a', 'b', 'c']);
});

test('a wrong change fails alone, and what comes after a refused access is not attempted', async (t) => {
  const written: string[][] = [];
  const writer = (error: AdapterError | null) => ({
    batch: 2,
    parallel: 1,
    limits,
    list: async () => [],
    write: async (changes: readonly Change[]) => {
      written.push(changes.map(({ name }) => name));
      if (error) throw error;
    },
  });
  const at = (name: string): Change => ({ action: 'set', name, type: 'A', ttl: 60, values: ['192.0.2.1'] });
  const wrong: Change = { ...at('b.org'), values: ['no address'] } as Change;
  const results = await applyChanges(writer(null), [at('a.org'), wrong, at('c.org'), at('d.org')], undefined);
  t.deepEqual(
    results.map(({ state }) => state),
    ['done', 'failed', 'done', 'done'],
  );
  t.deepEqual(written.splice(0), [['a.org', 'c.org'], ['d.org']]);
  const refused = await applyChanges(
    writer(new AdapterError('denied')),
    ['a.org', 'b.org', 'c.org'].map(at),
    undefined,
  );
  t.deepEqual(
    refused.map(({ state }) => state),
    ['failed', 'failed', 'failed'],
  );
  t.deepEqual(written, [['a.org', 'b.org']]);
});

test('Retry-After is seconds or a date, and never without end', (t) => {
  const now = Date.parse('2026-01-01T00:00:00Z');
  t.is(retryAfter('7', now), 7);
  t.is(retryAfter('Thu, 01 Jan 2026 00:01:00 GMT', now), 60);
  t.is(retryAfter('Wed, 31 Dec 2025 00:00:00 GMT', now), 0);
  t.is(retryAfter('9999999999', now), 86_400);
  t.is(retryAfter('soon', now), null);
  t.is(retryAfter(undefined, now), null);
});

test('every provider keeps its credentials apart in clear fields and secrets, and gets them back', (t) => {
  t.true(adapterKinds().length >= 9);
  for (const kind of adapterKinds()) {
    const given = Object.fromEntries(
      kind.fields.map((field) => [field.key, field.options[0] ?? `value-of-${field.key}`] as const),
    );
    const { fields, secret } = splitCredentials(kind, given);
    for (const { key, secret: isSecret } of kind.fields) t.is(key in fields, !isSecret, `${kind.key} ${key}`);
    t.deepEqual(joinCredentials(kind, fields, secret), given, kind.key);
    t.throws(() => checkCredentials(kind, { ...given, other: 'x' }), { message: /.*/ });
    t.throws(() => checkCredentials(kind, {}), { message: /.*/ });
    for (const { key, pattern } of kind.fields) t.notThrows(() => new RegExp(pattern ?? ''), key);
  }
});
