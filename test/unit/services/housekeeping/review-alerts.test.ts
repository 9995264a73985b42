// Which alerts the items of the attention list raise, and which kinds may be closed.
import test from 'ava';
import { ATTENTION_KINDS, type AttentionKind } from '../../../../contract/resources/overview.ts';
import type { FoundAttention, RegisteredAttention } from '../../../../mixins/attention.ts';
import type { ServiceFeature } from '../../../../mixins/service-feature.ts';
import { MAX_SUBJECTS } from '../../../../models/alerts/alert.ts';
import { FEATURES } from '../../../../services/gen/features.ts';
import { alertsOf } from '../../../../services/housekeeping/review-alerts.ts';

test('every kind of attention is registered by one feature, or explains the alerts of others', (t) => {
  const kinds = FEATURES.flatMap(({ attention }: ServiceFeature) => Object.keys(attention?.kinds ?? {}));
  // The check of the channel is asked for by whoever looks; where no node is connected, each has an alert.
  t.deepEqual([...kinds, 'node_channel'].sort(), [...ATTENTION_KINDS].sort());
});

const ids = (count: number) => Array.from({ length: count }, (_, n) => `id-${n}`);

interface Row {
  what: string;
  registered: RegisteredAttention;
  items: Partial<FoundAttention>[];
  /** Ids of the alerts. */
  open: string[];
  complete: boolean;
}

const rows: readonly Row[] = [
  { what: 'nothing found', registered: { alert: 'node' }, items: [], open: [], complete: true },
  { what: 'the installation', registered: { alert: 'installation' }, items: [{}], open: [''], complete: true },
  {
    what: 'clusters',
    registered: { alert: 'cluster' },
    items: [{ clusterId: 'a' }, { clusterId: 'b', subjects: ['n'] }],
    open: ['a', 'b'],
    complete: true,
  },
  {
    what: 'all nodes of all items',
    registered: { alert: 'node' },
    items: [
      { clusterId: 'a', subjects: ['n', 'm'] },
      { clusterId: 'b', subjects: ['o'] },
    ],
    open: ['n', 'm', 'o'],
    complete: true,
  },
  {
    what: 'as many subjects as are read',
    registered: { alert: 'certificate' },
    items: [{ subjects: ids(MAX_SUBJECTS) }],
    open: ids(MAX_SUBJECTS),
    complete: true,
  },
  {
    what: 'more subjects than are read',
    registered: { alert: 'certificate' },
    items: [{ subjects: ids(MAX_SUBJECTS + 1) }],
    open: ids(MAX_SUBJECTS),
    complete: false,
  },
  {
    what: 'as many items as there can be',
    registered: { alert: 'site', most: 2 },
    items: [{ subjects: ['s'] }, { subjects: ['t'] }],
    open: ['s', 't'],
    complete: false,
  },
];
for (const { what, registered, items, open, complete } of rows) {
  test(`alerts: ${what}`, (t) => {
    const kind: AttentionKind = 'nodes_lagging';
    const found = alertsOf(
      { kinds: { [kind]: registered } },
      items.map((item) => ({ ...item, kind })),
    );
    t.deepEqual(
      found.open,
      open.map((id) => ({ kind, subject: registered.alert!, id })),
    );
    t.deepEqual(found.complete, complete ? [kind] : []);
  });
}

test('a kind whose alerts another job writes is neither opened nor closed', (t) => {
  t.deepEqual(alertsOf({ kinds: { sites_waf_share: { alert: null } } }, [{ kind: 'sites_waf_share' }]), {
    open: [],
    complete: [],
  });
});
