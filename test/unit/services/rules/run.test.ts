// What becomes of requests that rules are run over.
import { isDeepStrictEqual } from 'node:util';
import test from 'ava';
import { entryOf, rulesOf, runCase, runVectors, type ShortRule, summaryOf } from '../../../helpers/rule-runs.ts';

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

const block = (expression: string): ShortRule => ({ phase: 'waf-custom', expression, action: { kind: 'block' } });
const ofOnly = (rules: ShortRule[], request = {}) => runCase({ rules, request });

test('every field, function and condition that was evaluated is told, inner ones first, with its place', (t) => {
  const source = 'lower(http.user_agent) contains "curl" or ssl eq true';
  const { phases } = ofOnly([block(source)], { headers: [['User-Agent', 'CURL/8']] });
  const [{ reads } = { reads: [] }] = phases.flatMap(({ rules }) => rules);
  t.deepEqual(
    reads.map(({ at, end, kind, name, value }) => [source.slice(at, end), kind, name, value.text]),
    [
      ['http.user_agent', 'field', 'http.user_agent', 'CURL/8'],
      ['lower(http.user_agent)', 'function', 'lower', 'curl/8'],
      ['lower(http.user_agent) contains "curl"', 'condition', 'contains', 'true'],
      [source, 'condition', 'or', 'true'],
    ],
  );
});

test('values of an action are told with the path of their text', (t) => {
  const action = { kind: 'request_header' as const, header: 'x-a', expression: 'to_string(ip.src)' };
  const { phases } = ofOnly([{ phase: 'origin', expression: 'true', action }]);
  const [run] = phases.flatMap(({ rules }) => rules);
  t.deepEqual(
    run!.reads.map(({ part, name, type, value }) => [part, name, type, value.text]),
    [
      ['/expression', 'literal', 'boolean', 'true'],
      ['/action/expression', 'ip.src', 'ip', '192.0.2.1'],
      ['/action/expression', 'to_string', 'string', '192.0.2.1'],
    ],
  );
  t.deepEqual(run!.effects, [
    { kind: 'header_set', name: 'x-a', value: { text: '192.0.2.1', base64: null, bytes: 9 } },
  ]);
});

test('what nobody said is unknown, not guessed, unless it is not reached', (t) => {
  const rule = block('http.request.method eq "GET" and ip.geoip.country eq "DE"');
  const trace = ofOnly([rule, block('tls.ja4 eq "x" or true')]);
  t.deepEqual(trace.unknown, ['ip.geoip.country', 'tls.ja4']);
  const runs = trace.phases.flatMap(({ rules }) => rules);
  t.deepEqual(
    runs.map(({ result, unknown }) => [result, unknown]),
    [
      ['unknown', 'ip.geoip.country'],
      ['unknown', 'tls.ja4'],
    ],
  );
  t.is(trace.outcome.kind, 'origin');
  t.deepEqual(ofOnly([rule], { method: 'POST' }).unknown, []);
  t.deepEqual(ofOnly([rule], { country: 'DE' }).outcome.rule?.id, 's0');
  t.deepEqual(ofOnly([block('tls.ja4 eq ""')], { scheme: 'http' }).outcome.rule?.id, 's0');
  const header: ShortRule = {
    phase: 'request-transform',
    expression: 'true',
    action: { kind: 'request_header', header: 'x-country', expression: 'ip.geoip.country' } as ShortRule['action'],
  };
  t.like(ofOnly([header]).phases[0]!.rules[0]!, { result: 'unknown', unknown: 'ip.geoip.country', effects: [] });
});

test('bytes that are no text are shown in base64, and long values by their start', (t) => {
  const told = (value: string) => {
    const { phases } = ofOnly([block('http.referer eq ""')], { headers: [['Referer', value]] });
    return phases.flatMap(({ rules }) => rules)[0]!.reads[0]!.value;
  };
  t.deepEqual(told('\xc3\xa9'), { text: 'é', base64: null, bytes: 2 });
  t.deepEqual(told('\xff'), { text: null, base64: '/w==', bytes: 1 });
  t.deepEqual(told('a\x00'), { text: null, base64: 'YQA=', bytes: 2 });
  t.deepEqual(told('a'.repeat(600)), { text: 'a'.repeat(512), base64: null, bytes: 600 });
  t.deepEqual(told(`${'a'.repeat(511)}\xc3\xa9`), { text: 'a'.repeat(511), base64: null, bytes: 513 });
});

test('a run whose patterns cost too much ends, and says so', (t) => {
  const costly = block('http.referer matches ".*.*.*.*x"');
  const trace = ofOnly([...Array.from({ length: 63 }, () => costly), block('true')], {
    headers: [['Referer', 'y'.repeat(30_000)]],
  });
  t.false(trace.complete);
  const skipped = trace.phases.flatMap(({ rules }) => rules).filter(({ skipped }) => skipped === 'too_costly');
  t.true(skipped.length > 0);
});

test('values beyond 2000 are counted, not shown', (t) => {
  const wide = Array.from({ length: 60 }, () => 'http.host eq "a"').join(' or ');
  const trace = ofOnly(Array.from({ length: 30 }, () => block(wide)));
  const runs = trace.phases.flatMap(({ rules }) => rules);
  const shown = runs.reduce((sum, { reads }) => sum + reads.length, 0);
  const leftOut = runs.reduce((sum, { readsLeftOut }) => sum + readsLeftOut, 0);
  t.deepEqual([shown, leftOut, trace.complete], [2000, 30 * 121 - 2000, true]);
});

test('a body beyond the limit of the site, or of the rule that overrode it', (t) => {
  const override: ShortRule = {
    phase: 'config',
    expression: 'true',
    action: { kind: 'config', requestBodyLimit: 5 } as ShortRule['action'],
  };
  const outcome = (rules: ShortRule[], bodyLimit: number, bodySize: number) => {
    const { kind, rule } = runCase({ rules, request: { bodySize } }, { bodyLimit }).outcome;
    return [kind, rule?.id ?? null];
  };
  t.deepEqual(outcome([], 10, 11), ['body_too_large', null]);
  t.deepEqual(outcome([], 10, 10), ['origin', null]);
  t.deepEqual(outcome([], 0, 1e9), ['origin', null]);
  t.deepEqual(outcome([override], 10, 6), ['body_too_large', 's0']);
});

test('an address is counted by itself, or by its /64', (t) => {
  const limit: ShortRule = {
    phase: 'ratelimit',
    expression: 'true',
    action: { kind: 'rate_limit', limit: 1, windowSeconds: 1, key: 'ip.src' } as ShortRule['action'],
  };
  const counted = (address: string) => ofOnly([limit], { address }).outcome.limits[0]!.value.text;
  t.is(counted('2001:db8:0:1:2::3'), '2001:db8:0:1::/64');
  t.is(counted('192.0.2.1'), '192.0.2.1');
});

test('an exemption by path holds for the plain spelling alone, and a block for every one', (t) => {
  const effects = (expression: string, uri: string) => {
    const rules = [
      { phase: 'config', expression, action: { kind: 'config', underAttack: false, ccMaxLevel: 'js', gzip: false } },
      { phase: 'waf-custom', expression, action: { kind: 'allow' } },
      block('true'),
    ] as ShortRule[];
    const { phases, outcome } = ofOnly(rules, { uri });
    const kinds = phases.flatMap(({ rules }) => rules.flatMap((run) => run.effects.map(({ kind }) => kind)));
    return [outcome.kind, outcome.exempt, kinds.filter((kind) => kind === 'exemption_left').length];
  };
  const spared = ['origin', true, 0];
  const not = ['block', false, 3];
  const starts = 'starts_with(http.request.uri.path, "/public/")';
  t.deepEqual(effects(starts, '/public/x'), spared);
  t.deepEqual(effects('http.request.uri.path eq "/a b"', '/a%20b?c=%2f'), spared);
  t.deepEqual(effects('http.request.uri.path eq "/中"', '/%E4%B8%AD'), spared);
  t.deepEqual(effects(starts, '/public/..;/admin'), not);
  t.deepEqual(effects(starts, '/admin/..%2fpublic/x'), not);
  t.deepEqual(effects('starts_with(http.request.uri, "/public/")', '/public/../admin'), not);
  t.deepEqual(effects('http.request.uri.path.extension eq "css"', '/x/..;/a.css'), not);
  t.deepEqual(effects('ip.src eq 192.0.2.1', '/x/..;/admin'), spared);
});
