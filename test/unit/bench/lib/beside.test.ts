import test from 'ava';
import { beside, isSteady, judge } from '../../../../bench/lib/beside.ts';

test('above 1 the present edge is the better one, whether more or less of a figure is', (t) => {
  const requests = beside({ old: [100, 200], oldAgain: [100, 200], present: [110, 220] }, 'more');
  const time = beside({ old: [44, 22], oldAgain: [44, 22], present: [40, 20] }, 'less');
  t.is(requests.presentToOld.median.toFixed(6), '1.100000');
  t.is(time.presentToOld.median.toFixed(6), '1.100000');
});

test('rounds are compared each with itself: what disturbs one disturbs both sides of it', (t) => {
  const { presentToOld, oldToItself } = beside({ old: [10, 1000], oldAgain: [10, 1000], present: [10, 1000] }, 'more');
  t.deepEqual([presentToOld.low, presentToOld.high], [1, 1]);
  t.deepEqual([oldToItself.low, oldToItself.high], [1, 1]);
});

test('a worse edge misses the aim', (t) => {
  const old = [100, 100, 100];
  const reached = (present: number[]) => judge('x', beside({ old, oldAgain: old, present }, 'more')).aims[0]!.reached;
  t.false(reached([97, 97, 97]));
  t.true(reached([98, 98, 98]));
});

test('where equal edges differ, the run says that it cannot tell', (t) => {
  const unsteady = beside({ old: [100, 100, 100], oldAgain: [110, 109, 111], present: [100, 100, 100] }, 'more');
  t.false(isSteady(unsteady));
  const { aims, notes } = judge('requests', unsteady);
  t.false(aims[1]!.reached);
  t.regex(notes[0]!, /^requests: equal edges differed \[1\.09, 1\.11\] in this run/);
});
