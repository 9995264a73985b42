import test from 'ava';
import { concerns, type LiveFilter } from '../../../../../../console/src/shared/live/topics.ts';
import type { LiveEvent } from '../../../../../../contract/resources/live.ts';

// What a page wants to know of, what is told, and whether that concerns it.
const CASES: [filters: LiveFilter[], events: LiveEvent[], concerned: boolean][] = [
  [['nodes'], [{ topic: 'nodes', ids: ['a'] }], true],
  [['nodes'], [{ topic: 'nodes' }], true],
  [['nodes:a'], [{ topic: 'nodes', ids: ['b', 'a'] }], true],
  [['nodes:a'], [{ topic: 'nodes', ids: ['b'] }], false],
  [['nodes:a'], [{ topic: 'nodes' }], true],
  [['nodes:a'], [{ topic: 'sites', ids: ['a'] }], false],
  [
    ['sites', 'nodes:a'],
    [
      { topic: 'nodes', ids: ['b'] },
      { topic: 'sites', ids: ['x'] },
    ],
    true,
  ],
  [['settings:cc_template'], [{ topic: 'settings', ids: ['cc_template'] }], true],
  [[], [{ topic: 'nodes' }], false],
  [['nodes'], [], false],
];

for (const [filters, events, concerned] of CASES) {
  test(`${filters.join(', ') || 'nothing'} and ${JSON.stringify(events)}`, (t) => {
    t.is(concerns(filters, events), concerned);
  });
}
