import test from 'ava';
import { RecentEvents } from '../../../../../../console/src/shared/live/recent-events.ts';

const message = (cursor: string) => ({ kind: 'events' as const, events: [{ topic: 'sites' as const }], cursor });

test('a tab that joins is told of the last five seconds', (t) => {
  let now = 0;
  const recent = new RecentEvents(() => now);
  for (now = 0; now <= 8_000; now += 1_000) recent.add(message(`${now}-0`));
  now = 8_500;
  t.deepEqual(
    recent.all().map(({ cursor }) => cursor),
    ['4000-0', '5000-0', '6000-0', '7000-0', '8000-0'],
  );
});

test('they are bounded', (t) => {
  const recent = new RecentEvents(() => 0);
  for (let index = 0; index < 1_000; index++) recent.add(message(`${index}-0`));
  t.is(recent.all().length, 100);
  t.is(recent.all().at(-1)!.cursor, '999-0');
});
