// Of how many events an exclusion leaves too little to be told of, by what events tell.
import test from 'ava';
import type { WafExclusion } from '../../../../contract/resources/site-waf.ts';
import type { NewestMatches } from '../../../../models/waf/waf-event.ts';
import { countSilenced } from '../../../../services/waf/silenced.ts';

const CRITICAL = 942_100;
const OTHER_CRITICAL = 942_190;
const WARNING = 920_100;
const EVENT: NewestMatches = { path: '/editor', rules: [CRITICAL], matches: [], score: 5, threshold: 5 };
const at = (rule: number, name = 'text') => ({ rule, part: 'argument', name });
const ANY: WafExclusion = { ruleId: CRITICAL, tag: null, path: '', pathPrefix: false, part: 'all', name: '' };
const NAMED: WafExclusion = { ...ANY, part: 'argument', name: 'text' };

const BOTH = { rules: [CRITICAL, OTHER_CRITICAL], score: 10 };
const TWICE = { score: 10, matches: [at(CRITICAL)] };
const MANY = { rules: [CRITICAL, ...Array.from({ length: 15 }, (_, n) => 942_500 + n)], score: 100 };

const cases: [what: string, exclusion: WafExclusion, event: Partial<NewestMatches>, events: number, matched: number][] =
  [
    ['nothing is left', ANY, {}, 1, 1],
    ['another rule', { ...ANY, ruleId: WARNING }, {}, 0, 0],
    ['another path', { ...ANY, path: '/edit' }, {}, 0, 0],
    ['paths that begin so', { ...ANY, path: '/edit', pathPrefix: true }, {}, 1, 1],
    ['what is left is an attack', ANY, BOTH, 0, 1],
    ['what is left is below a higher threshold', ANY, { ...BOTH, threshold: 6 }, 1, 1],
    ['a warning more, which is none by itself', ANY, { rules: [CRITICAL, WARNING], score: 8 }, 1, 1],
    [
      'without the warning it is an attack',
      { ...ANY, ruleId: WARNING },
      { rules: [CRITICAL, WARNING], score: 8 },
      0,
      1,
    ],
    ['no attack, of which something is left', ANY, { rules: [CRITICAL, WARNING], score: 8, threshold: 20 }, 0, 1],
    ['no attack, of which nothing is left', ANY, { threshold: 20 }, 1, 1],
    ['a place', NAMED, { matches: [at(CRITICAL)] }, 1, 1],
    ['another place', NAMED, { matches: [at(CRITICAL, 'other')] }, 0, 0],
    ['a place that is not told', NAMED, {}, 0, 0],
    ['one place of two', NAMED, TWICE, 0, 1],
    ['a rule that matched twice', ANY, TWICE, 1, 1],
    ['rules beyond those that are told', ANY, { ...MANY, threshold: 1 }, 0, 1],
  ];
for (const [what, exclusion, event, events, matched] of cases) {
  test(what, (t) => {
    t.like(countSilenced([exclusion], [{ ...EVENT, ...event }]), { events, matched });
  });
}

test('of a tag that no rule has nothing is known', (t) => {
  const exclusion = { ...ANY, ruleId: null, tag: 'paranoia-level/1' };
  t.is(countSilenced([ANY, exclusion], [EVENT]), null);
  t.like(countSilenced([{ ...exclusion, tag: 'attack-sqli' }], [{ ...EVENT, ...BOTH }]), { events: 1, matched: 1 });
});

// A node of this version: each place with its points.
const counted = (matches: [rule: number, name: string, points: number][], hidden = 0): NewestMatches => ({
  ...EVENT,
  rules: [...new Set(matches.map(([rule]) => rule))],
  matches: matches.map(([rule, name, points]) => ({ ...at(rule, name), points })),
  matchesSeen: matches.length + hidden,
  score: matches.reduce((sum, [, , points]) => sum + points, hidden * 5),
});
const named = (name: string, ruleId = CRITICAL): WafExclusion => ({ ...ANY, ruleId, part: 'argument', name });
const TEXT_AND_TITLE = counted([
  [CRITICAL, 'text', 10],
  [CRITICAL, 'title', 5],
  [OTHER_CRITICAL, 'text', 5],
]);

test('with the points of each place it is exact what stays an attack, and because of what', (t) => {
  const left = (exclusions: WafExclusion[], event = TEXT_AND_TITLE) => {
    const found = countSilenced(exclusions, [event])!;
    return [found.events, found.attacks, ...found.remaining.map(({ ruleId, name }) => `${ruleId} ${name}`)];
  };
  t.deepEqual(left([named('text')]), [0, 1, `${CRITICAL} title`, `${OTHER_CRITICAL} text`]);
  t.deepEqual(left([named('text'), named('title')]), [0, 1, `${OTHER_CRITICAL} text`]);
  t.deepEqual(left([named('text'), named('title'), named('text', OTHER_CRITICAL)]), [1, 0]);
  t.deepEqual(left([ANY]), [0, 1, `${OTHER_CRITICAL} text`]);
  t.deepEqual(left([named('text')], { ...TEXT_AND_TITLE, threshold: 11 }), [1, 0]);
  // What the event did not keep may be an attack by itself.
  t.deepEqual(left([named('text')], counted([[CRITICAL, 'text', 5]], 1)), [0, 1]);
  t.deepEqual(left([named('text')], { ...counted([[CRITICAL, 'text', 3]], 1), threshold: 50 }), [0, 0]);
});
