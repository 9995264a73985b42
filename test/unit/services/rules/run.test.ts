// What becomes of requests that rules are run over.
import { isDeepStrictEqual } from 'node:util';
import test from 'ava';
import { entryOf, rulesOf, runCase, runVectors, summaryOf } from '../../../helpers/rule-runs.ts';

const { cases, lists, request } = runVectors();

test('every vector comes to what nodes come to', (t) => {
  t.true(cases.length > 80);
  const got = cases.map((each) => {
    const asked = { ...request, ...each.request };
    const { name, expect } = each;
    return { name, expect, got: summaryOf(runCase({ ...each, request: asked }, { lists }), asked.uri!) };
  });
  t.deepEqual(
    got.filter(({ expect, got }) => !isDeepStrictEqual(expect, got)),
    [],
  );
  t.is(new Set(cases.map(({ name }) => name)).size, cases.length);
});

test('every vector has the entries that nodes are tested with', (t) => {
  for (const { name, platform = [], rules, entries } of cases) {
    const expected = { platform: entryOf(rulesOf(platform, 'p')), site: entryOf(rulesOf(rules, 's')) };
    t.deepEqual(entries, expected, name);
  }
});
