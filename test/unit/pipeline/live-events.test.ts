import test from 'ava';
import { MAX_LIVE_IDS } from '../../../contract/resources/live.ts';
import { boundedHints, mergeHints } from '../../../pipeline/live-events.ts';

const many = (count: number) => Array.from({ length: count }, (_, index) => `nodes n${index}`);

// Hints, and the events they become.
const CASES: [what: string, hints: string[], events: ReturnType<typeof mergeHints>][] = [
  ['nothing', [], []],
  ['one', ['sites a'], [{ topic: 'sites', ids: ['a'] }]],
  ['the same twice is told once', ['sites a', 'sites a'], [{ topic: 'sites', ids: ['a'] }]],
  ['ids keep their order', ['sites b', 'sites a', 'sites b'], [{ topic: 'sites', ids: ['b', 'a'] }]],
  [
    'topics keep theirs',
    ['bans c', 'sites a', 'bans d'],
    [
      { topic: 'bans', ids: ['c', 'd'] },
      { topic: 'sites', ids: ['a'] },
    ],
  ],
  ['a topic alone swallows its ids', ['sites a', 'sites', 'sites b'], [{ topic: 'sites' }]],
  ['a topic of a later version is left out', ['rockets a', 'sites a'], [{ topic: 'sites', ids: ['a'] }]],
  ['as many as may be', many(MAX_LIVE_IDS), [{ topic: 'nodes', ids: many(MAX_LIVE_IDS).map((hint) => hint.slice(6)) }]],
  ['one more is the topic alone', many(MAX_LIVE_IDS + 1), [{ topic: 'nodes' }]],
  ['an id with blanks', ['settings a b'], [{ topic: 'settings', ids: ['a b'] }]],
];

for (const [what, hints, events] of CASES) {
  test(`merged: ${what}`, (t) => {
    t.deepEqual(mergeHints(hints), events);
    t.deepEqual(mergeHints(boundedHints(hints)), events);
  });
}
