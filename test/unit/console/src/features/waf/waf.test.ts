// What the WAF's pages make of rules, events and what is typed.
import test from 'ava';
import { attackOf } from '../../../../../../console/src/features/waf/attack.ts';
import { eventsInput } from '../../../../../../console/src/features/waf/events-input.ts';
import {
  exclusionAt,
  exclusionsOf,
  isWhole,
  newExclusion,
  ofPart,
  readIds,
  readTarget,
  targetText,
  withExclusion,
  withoutExclusion,
} from '../../../../../../console/src/features/waf/exclusion.ts';
import {
  FAMILIES,
  familyOf,
  findRules,
  hasFamily,
  runningRules,
} from '../../../../../../console/src/features/waf/rules.ts';
import { DEFAULT_WAF_EXCLUSION } from '../../../../../../contract/resources/site-waf.ts';
import RULES from '../../../../../../contract/waf-rules.json' with { type: 'json' };

const AT = { ruleId: 942_100, path: '/editor', part: 'argument', name: 'items.3.text' } as const;

test('what matched is excluded as narrowly as it matched, at any index of an array', (t) => {
  t.deepEqual(exclusionAt(AT), {
    ruleId: 942_100,
    tag: null,
    path: '/editor',
    pathPrefix: false,
    part: 'argument',
    name: 'items.*.text',
  });
  t.is(exclusionAt({ ...AT, name: '7' }).name, '7');
  t.is(exclusionAt({ ...AT, name: 'a.0' }).name, 'a.*');
});

test('a part without a name is the whole request', (t) => {
  t.like(exclusionAt({ ...AT, part: 'argument', name: '' }), { part: 'all', name: '', path: '/editor' });
  t.deepEqual(ofPart('all', 'q'), { part: 'all', name: '' });
  t.deepEqual(ofPart('cookie', 'q'), { part: 'cookie', name: 'q' });
});

test('digits are a rule, other text is a tag', (t) => {
  t.deepEqual(readTarget(' 942100 '), { ruleId: 942_100, tag: null });
  t.deepEqual(readTarget('attack-sqli'), { ruleId: null, tag: 'attack-sqli' });
  t.deepEqual(readTarget(''), { ruleId: null, tag: null });
  for (const typed of ['942100', 'attack-sqli', '']) t.is(targetText(readTarget(typed)), typed);
});

test('a new one is what the contract fills in', (t) => {
  t.deepEqual(newExclusion(), DEFAULT_WAF_EXCLUSION);
});

test('an exclusion is tried once it says all it has to', (t) => {
  t.false(isWhole(newExclusion()));
  t.true(isWhole({ ...newExclusion(), ruleId: 942_100 }));
  t.false(isWhole({ ...newExclusion(), ruleId: 942_100, path: 'editor' }));
  t.false(isWhole({ ...newExclusion(), tag: 'attack-sqli', part: 'cookie' }));
  t.true(isWhole(exclusionAt(AT)));
});

test('an exclusion is there once, and taking it back leaves the others', (t) => {
  const [one, other] = [exclusionAt(AT), exclusionAt({ ...AT, path: '/other' })];
  t.deepEqual(withExclusion([other], one), [other, one]);
  t.deepEqual(withExclusion([one, other], { ...one }), [one, other]);
  t.deepEqual(withoutExclusion([one, other], { ...one }), [other]);
});

const match = (ruleId: number, name: string, points: number | null = null) =>
  ({ ruleId, part: 'argument', name, value: null, points }) as const;

test('all matches of an event become one exclusion each, without those that there are', (t) => {
  const event = {
    path: '/editor',
    rules: [942_100, 942_190, 920_130],
    matches: [match(942_100, 'items.0.text'), match(942_100, 'items.1.text'), match(942_190, 'q')],
  };
  const [list, query, body] = [
    exclusionAt({ ...AT, path: '/editor' }),
    exclusionAt({ ...AT, ruleId: 942_190, name: 'q' }),
    exclusionAt({ ...AT, ruleId: 920_130, part: 'all', name: '' }),
  ];
  t.deepEqual(exclusionsOf(event, []), [list, query, body]);
  t.deepEqual(exclusionsOf(event, [query]), [list, body]);
  t.deepEqual(exclusionsOf(event, [body, query, list]), []);
});

test('an attack is of the family that adds most, at the place where it adds most', (t) => {
  const rules = [920_130, 941_100, 942_100, 942_190];
  const told = [match(920_130, ''), match(941_100, 'q'), match(942_100, 'a'), match(942_100, 'b'), match(942_190, 'b')];
  t.deepEqual(attackOf({ rules, matches: told }), { family: 942, part: 'argument', name: 'b', others: [941, 920] });
  const points = [match(941_100, 'x', 10), match(942_100, 'a', 5)];
  t.like(attackOf({ rules, matches: points }), { family: 941, name: 'x' });
  t.like(attackOf({ rules: [920_130, 942_100], matches: [match(920_130, 'a'), match(942_100, 'b')] }), { family: 942 });
  t.deepEqual(attackOf({ rules: [942_100], matches: [] }), { family: 942, part: 'all', name: '', others: [] });
});

test('ids that are typed are numbers, and what is none stays as it was typed', (t) => {
  t.deepEqual(readIds(['942100', 'x', '99999999999']), [942_100, 'x', '99999999999']);
});

test('every rule is of a family with words', (t) => {
  t.deepEqual(
    RULES.filter(({ id }) => !hasFamily(id)),
    [],
  );
  t.deepEqual([...new Set(RULES.map(({ id }) => familyOf(id)))], [...FAMILIES]);
});

test('rules are found by id, text and tag, all words of them, in a family', (t) => {
  t.deepEqual(
    findRules(RULES, '942100', null).map(({ id }) => id),
    [942_100],
  );
  t.true(findRules(RULES, 'LIBINJECTION sql', null).some(({ id }) => id === 942_100));
  t.is(findRules(RULES, 'libinjection', 941).filter(({ id }) => familyOf(id) !== 941).length, 0);
  t.is(findRules(RULES, '', null).length, RULES.length);
});

test('fewer rules run at a low level, and none that is excluded', (t) => {
  const run = (paranoiaLevel: number, more = {}) =>
    runningRules(RULES, { paranoiaLevel, excludedRuleIds: [], excludedFamilies: [], ...more });
  t.is(run(4), RULES.length);
  t.true(run(1) < run(2));
  t.is(run(1, { excludedRuleIds: [942_100] }), run(1) - 1);
  const family = RULES.filter(({ id, paranoia }) => familyOf(id) === 941 && paranoia === 1).length;
  t.is(run(1, { excludedFamilies: [941] }), run(1) - family);
});

test('what the address asks for is asked as the list takes it', (t) => {
  const page = { page: 1, pageSize: 50 };
  t.deepEqual(eventsInput(page), page);
  t.deepEqual(eventsInput({ ...page, range: '7d', verdict: 'blocked', rule: '942100', request: 'abc' }), {
    ...page,
    range: '7d',
    blocked: true,
    ruleId: 942_100,
    requestId: 'abc',
  });
  t.deepEqual(eventsInput({ ...page, path: '/a', address: '2001:db8::/32' }), {
    ...page,
    path: '/a',
    address: '2001:db8::/32',
  });
  t.deepEqual(eventsInput({ ...page, path: 'a', address: '192.0.2.' }), page);
  t.deepEqual(eventsInput({ ...page, verdict: 'passed', rule: '942', request: '请求' }), { ...page, blocked: false });
});
