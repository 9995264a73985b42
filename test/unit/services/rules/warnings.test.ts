// What is warned of, and what is not.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import fc from 'fast-check';
import { root } from '../../../../bin/lib/root.ts';
import { parseRegex } from '../../../../contract/expression/regex.ts';
import type { Condition } from '../../../../contract/expression/tree.ts';
import { RULE_WARNINGS } from '../../../../contract/rule-warnings.ts';
import { evaluateCondition } from '../../../../services/rules/evaluate/evaluate.ts';
import { compileRegex, programSize } from '../../../../services/rules/evaluate/regex-program.ts';
import { isNever, Shape } from '../../../../services/rules/warnings/implies.ts';
import { ruleWarnings, type WarningContext } from '../../../../services/rules/warnings/warnings.ts';
import { PAIR_LISTS, randomFields, TreeMaker } from '../../../helpers/expression-pairs.ts';
import { pattern } from '../../../helpers/expressions.ts';
import { givenFields } from '../../../helpers/given-fields.ts';
import { Random } from '../../../helpers/random.ts';
import { rulesOf, type ShortRule } from '../../../helpers/rule-runs.ts';

const CONTEXT: WarningContext = { address: '192.0.2.1', lists: new Set(['office']), ja4Held: true };
const rule = (
  phase: ShortRule['phase'],
  expression: string,
  action: object,
  more: Partial<ShortRule> = {},
): ShortRule => ({
  phase,
  expression,
  action: action as ShortRule['action'],
  ...more,
});
const block = (expression: string, more: Partial<ShortRule> = {}) =>
  rule('waf-custom', expression, { kind: 'block' }, more);
const allow = (expression: string) => rule('waf-custom', expression, { kind: 'allow' });
const log = (expression: string) => rule('waf-custom', expression, { kind: 'log' });
const limit = (expression: string, key = 'ip.src') =>
  rule('ratelimit', expression, { kind: 'rate_limit', limit: 1, windowSeconds: 1, key });

/** Warnings as `<id> <code> <parameters>`. */
function warned(rules: ShortRule[], platform: ShortRule[] = [], context: Partial<WarningContext> = {}): string[] {
  const found = ruleWarnings(rulesOf(rules, 's'), rulesOf(platform, 'p'), { ...CONTEXT, ...context });
  return found.map(({ ruleId, code, params }) => [ruleId, code, ...Object.values(params)].join(' '));
}

const PATH = 'http.request.uri.path eq "/a"';

test('a condition that holds for no request', (t) => {
  t.deepEqual(
    warned([log('false'), log('false and ssl eq true'), log('not true'), log('false or not (true or ssl eq true)')]),
    ['s0 never_matches', 's1 never_matches', 's2 never_matches', 's3 never_matches'],
  );
  t.deepEqual(warned([log('ssl eq true or false'), log('true')]), []);
});

test('what comes after a rule that ends every request is not reached, but in the phases of the response', (t) => {
  const header = rule('response-transform', 'true', { kind: 'response_header', header: 'x-a', value: '1' });
  const other = { address: null };
  t.deepEqual(warned([log('true'), block('true'), log(PATH), limit('true'), header], [], other), [
    's2 after_end s1',
    's3 after_end s1',
  ]);
  t.deepEqual(warned([log('true')], [block('true')], other), ['s0 after_end p0']);
  t.deepEqual(warned([log('true')], [block('true', { enabled: false })], other), []);
  t.deepEqual(warned([rule('redirect', 'true', { kind: 'redirect', value: '/a' }), limit(PATH)]), ['s1 after_end s0']);
});

test('allow ends the list of its own, and lets pass what comes after a block of its list', (t) => {
  t.deepEqual(warned([allow('true'), log(PATH), limit('true')]), ['s1 after_end s0']);
  t.deepEqual(warned([log('true')], [allow('true')]), []);
  t.deepEqual(warned([allow(PATH), block('true'), log('true'), limit('true')]), [
    's1 blocks_you 192.0.2.1',
    's2 after_end s1',
  ]);
});

test('a condition that one before has for its own', (t) => {
  const both = `${PATH} and ssl eq true`;
  t.deepEqual(warned([block(PATH), log(both)]), ['s1 covered s0']);
  t.deepEqual(warned([block(both), log(PATH)]), []);
  t.deepEqual(warned([block(`ssl eq false or ${PATH}`), log(both), log('ssl eq false')]), [
    's1 covered s0',
    's2 covered s0',
  ]);
  t.deepEqual(warned([block('http.host in {"a" "b"}'), log('http.host eq "a"'), log('http.host in {"a" "c"}')]), [
    's1 covered s0',
  ]);
  t.deepEqual(
    warned([block('ip.src in {10.0.0.0/8}'), log('ip.src eq 10.1.0.0/16'), log('ip.src in {10.0.0.1 11.0.0.1}')]),
    ['s1 covered s0'],
  );
  // Rules for origins edit headers before later ones of their phase look at them.
  const origin = rule('origin', PATH, { kind: 'origin', port: 81 });
  t.deepEqual(warned([block(PATH), origin]), []);
});

test('an exception that also holds where the field is missing', (t) => {
  t.deepEqual(
    warned([
      log('http.user_agent ne "a"'),
      log('not http.referer contains "example.com"'),
      log('not (ssl eq true and http.request.cookies["a"] in {"1"})'),
      log('not starts_with(http.request.headers["x-a"], "v")'),
      log('ip.geoip.country ne "DE"'),
    ]),
    [
      's0 missing_matches http.user_agent',
      's1 missing_matches http.referer',
      's2 missing_matches http.request.cookies["a"]',
      's3 missing_matches http.request.headers["x-a"]',
      's4 missing_matches ip.geoip.country',
    ],
  );
  t.deepEqual(
    warned([
      log('http.user_agent ne "a" and http.user_agent ne ""'),
      log('http.user_agent eq "a"'),
      log('not http.user_agent ne "a"'),
      log('http.request.headers["x-a"] ne ""'),
      log('http.host ne "a"'),
      log('not starts_with(http.referer, "")'),
    ]),
    [],
  );
});

test('a rule that blocks whoever saves it, by the address alone', (t) => {
  t.deepEqual(warned([block('ip.src eq 192.0.2.0/24')]), ['s0 blocks_you 192.0.2.1']);
  t.deepEqual(warned([block('ip.src in $office')]), ['s0 blocks_you 192.0.2.1']);
  t.deepEqual(warned([block('not ip.src in $other')]), ['s0 blocks_you 192.0.2.1']);
  t.deepEqual(warned([block('not ip.src in $office'), block('ip.src eq 192.0.2.0/24 and ssl eq true')]), []);
  t.deepEqual(warned([allow('ip.src in $office'), block('ip.src eq 192.0.0.0/8')]), []);
  t.deepEqual(warned([allow('ip.src in $office and ssl eq true'), block('ip.src eq 192.0.0.0/8')]), [
    's1 blocks_you 192.0.2.1',
  ]);
  t.deepEqual(warned([block('ip.src eq 192.0.2.0/24')], [], { address: null }), []);
});

test('patterns that cost more than they need to', (t) => {
  const [costly] = warned([log('http.user_agent matches "[a-z]{900}[0-9]{0,900}x"')]);
  t.regex(costly!, /^s0 costly_pattern \S+ 2704$/);
  t.deepEqual(warned([log('http.user_agent matches ".*bot"'), log('http.user_agent matches "^.*bot"')]), [
    's0 pattern_start .*bot',
  ]);
  const value = { kind: 'redirect', target: 'regex_replace(http.request.uri.path, ".*/", "/")' };
  t.deepEqual(warned([rule('redirect', PATH, value)]), []);
});

test('JA4 that nodes cannot tell, and a key that may be missing', (t) => {
  t.deepEqual(warned([log('tls.ja4 eq "a"'), limit('true', 'tls.ja4')]), ['s0 ja4_held', 's1 ja4_held']);
  t.deepEqual(warned([log('tls.ja4 eq "a"'), limit('true', 'tls.ja4')], [], { ja4Held: false }), []);
  const key = 'http.request.headers.x-key';
  t.deepEqual(warned([limit('true', key), limit('ssl eq true and http.request.headers["x-key"] ne ""', key)]), [
    's0 key_missing x-key',
  ]);
});

test('messages have their parameters in them', (t) => {
  const [first] = ruleWarnings(rulesOf([block('ip.src eq 192.0.2.0/24')], 's'), [], CONTEXT);
  t.is(first!.message, 'The rule blocks your own address, 192.0.2.1.');
});

test('the document names every code', (t) => {
  const [, section = ''] = readFileSync(join(root, 'docs/rules.md'), 'utf8').split('## Warnings');
  const named = [...section.split('## ')[0]!.matchAll(/^\| `([a-z0-9_]+)` \|/gm)].map(([, code]) => code);
  t.deepEqual(named, Object.keys(RULE_WARNINGS));
});

test('what one condition is said to imply holds wherever it does, and what never holds does not', (t) => {
  const random = new Random(5);
  let implied = 0;
  for (let count = 0; count < 3000; count++) {
    const given = randomFields(random);
    const maker = new TreeMaker(random, given);
    const [a, b] = [maker.condition(), maker.condition()];
    const whole = { at: 0, end: 0 };
    const either: Condition = b.op === 'or' || a.op === 'or' ? a : { op: 'or', children: [b, a], ...whole };
    const around = givenFields(given, PAIR_LISTS);
    const [first, second] = [evaluateCondition(a, around), evaluateCondition(either, around)];
    if (new Shape(a).implies(new Shape(either))) {
      implied++;
      if (first.ok && first.value && second.ok) t.true(second.value);
    }
    if (new Shape(a).implies(new Shape(b)) && first.ok && first.value) {
      const other = evaluateCondition(b, around);
      t.true(!other.ok || other.value);
    }
    if (isNever(a)) t.false(first.ok && first.value);
  }
  t.true(implied > 1000);
});

test('the size of a pattern is that of its program', (t) => {
  fc.assert(
    fc.property(pattern, (source) => {
      const regex = parseRegex(source);
      t.is(programSize(regex), compileRegex(regex).instructions.length, source);
    }),
  );
});

const COUNTRIES: readonly [expression: string, warnings: string[]][] = [
  ['ip.geoip.country eq "Russia"', ['Russia RU']],
  ['ip.geoip.country eq "RU"', []],
  ['ip.geoip.country eq "ru"', ['ru RU']],
  ['ip.geoip.country eq "RUS"', ['RUS DE']],
  ['ip.geoip.country eq "UK"', ['UK GB']],
  ['ip.geoip.country eq "GB"', []],
  ['ip.geoip.country eq "EU"', ['EU DE']],
  ['ip.geoip.country eq "XK"', []],
  ['ip.geoip.country eq ""', []],
  ['ip.geoip.country eq " DE"', [' DE DE']],
  ['ip.geoip.country ne "germany"', ['germany DE']],
  ['ip.geoip.country ne "DE"', []],
  ['not ip.geoip.country eq "France"', ['France FR']],
  ['ip.geoip.country in {"DE" "FR"}', []],
  ['ip.geoip.country in {"DE" "China" "uk"}', ['China CN', 'uk GB']],
  ['not ip.geoip.country in {"DE" "Italy"}', ['Italy IT']],
  ['lower(ip.geoip.country) eq "ru"', []],
  ['lower(ip.geoip.country) eq "RU"', ['RU RU']],
  ['upper(ip.geoip.country) in {"RU" "ua"}', ['ua UA']],
  ['ip.geoip.country contains "Russia"', ['Russia RU']],
  ['ip.geoip.country contains "R"', []],
  ['ip.geoip.country matches "^(DE|FR)$"', []],
  ['ip.geoip.country matches "^Germany$"', ['^Germany$ DE']],
  ['ip.geoip.country wildcard "r*"', []],
  ['ip.geoip.country wildcard "russ*"', ['russ* DE']],
  ['ip.geoip.country strict wildcard "r*"', ['r* DE']],
  ['starts_with(ip.geoip.country, "Ru")', ['Ru RU']],
  ['starts_with(ip.geoip.country, "R")', []],
  ['len(ip.geoip.country) eq 2', []],
  ['ip.geoip.subdivision eq "Russia"', []],
  ['ssl eq true and (ip.geoip.country eq "Russia" or ip.geoip.country eq "Russia")', ['Russia RU']],
];
for (const [expression, expected] of COUNTRIES) {
  test(`${expected.length > 0 ? 'no country' : 'a country'}: ${expression}`, (t) => {
    const found = warned([log(expression)]).filter((text) => text.includes('unknown_country'));
    t.deepEqual(
      found,
      expected.map((params) => `s0 unknown_country ${params}`),
    );
  });
}
