// The order of the attention list, and what is cut of it.
import test from 'ava';
import { ATTENTION_KINDS, MAX_ATTENTION } from '../../../../contract/resources/overview.ts';
import { attentionList } from '../../../../services/overview/attention.ts';

// Specification: Other resources, Overview attention item.
const SPECIFIED = [
  'nodes_unhealthy',
  'dns_failed',
  'dns_blocked',
  'upgrade_failed',
  'canary_rolled_back',
  'canary_awaiting_promotion',
  'canary_running',
  'nodes_lagging',
  'nodes_no_address',
];

test('the kinds of the specification come first, in its order; ours follow', (t) => {
  const declared = SPECIFIED.filter((kind) => (ATTENTION_KINDS as readonly string[]).includes(kind));
  t.true(declared.length >= 5);
  t.deepEqual(ATTENTION_KINDS.slice(0, declared.length), declared);
});

test('items of the kinds of the specification are never cut; of ours the first 50 are listed', (t) => {
  const found = [
    ...Array.from({ length: 70 }, () => ({ kind: 'certificates_ending' as const, count: 1 })),
    ...Array.from({ length: 300 }, () => ({ kind: 'nodes_lagging' as const, count: 1 })),
    ...Array.from({ length: 300 }, () => ({ kind: 'canary_rolled_back' as const, count: 1 })),
  ];
  const { items, total } = attentionList({ channel: 'unreachable', found });
  t.is(total, 671);
  const counts = Map.groupBy(items, ({ kind }) => kind);
  t.deepEqual(
    [...counts].map(([kind, list]) => [kind, list.length]),
    [
      ['canary_rolled_back', 300],
      ['nodes_lagging', 300],
      ['certificates_ending', MAX_ATTENTION],
    ],
  );
});
