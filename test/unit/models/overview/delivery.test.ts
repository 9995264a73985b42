// What of a site nodes hold back or could not apply, for a kind of which a site has many entries.
import test from 'ava';
import { delivery, type Interval, type Situation } from '../../../../models/overview/delivery.ts';

const chunk = (index: number): Interval => ({
  track: 'S',
  kind: 'bulk-redirects',
  id: `s/${index}`,
  removed: false,
  from: 1,
  to: null,
  disabled: false,
  features: ['rules-v2'],
});
const site = { id: 's', enabled: true, updatedAt: new Date(0) };

test('a node that holds back many entries of a kind counts once', (t) => {
  const group = (track: 'S' | 'C', nodes: number): Situation['groups'][number] => ({
    track,
    revision: 1,
    healthy: true,
    lacks: ['rules-v2'],
    nodes,
    named: [{ id: track, name: track }],
    failed: new Map(),
  });
  const situation: Situation = { groups: [group('S', 2), group('C', 1)], silentNodes: 0, canary: null };
  const { blocked } = delivery(site as never, situation, [chunk(0), chunk(1), chunk(2)]);
  t.like(blocked, { length: 1 });
  t.like(blocked[0], { kind: 'bulk-redirects', reason: 'lacking', count: 3 });
  t.deepEqual(
    blocked[0]?.nodes.map(({ name }) => name),
    ['S', 'C'],
  );
});

test('a site whose nodes are all silent is unknown, and one that never had a node is not served', (t) => {
  const seen = (silentNodes: number, of: object = {}) =>
    delivery({ ...site, ...of } as never, { groups: [], silentNodes, canary: null }, []);
  t.like(seen(2), { state: 'pending', unknown: true, unserved: false });
  t.like(seen(0), { state: 'pending', unknown: false, unserved: true });
  t.like(seen(2, { enabled: false }), { state: 'disabled', unknown: false, unserved: false });
});
