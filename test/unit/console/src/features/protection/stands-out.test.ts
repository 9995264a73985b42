import test from 'ava';
import { standsOut } from '../../../../../../console/src/features/protection/stands-out.ts';

for (const [what, counts, offered] of [
  ['one attacker among visitors', [900, 40, 38, 12, 9], [900]],
  ['two attackers among visitors', [900, 700, 40, 38, 12, 9], [900, 700]],
  ['visitors alone', [41, 40, 38, 35, 30], []],
  ['an attacker and a visitor', [900, 90], [900]],
  ['a single address', [900], [900]],
  ['nobody', [], []],
] as const)
  test(`a ban is offered of who weighs far more than the others: ${what}`, (t) => {
    const items = counts.map((count) => ({ count }));
    t.deepEqual(
      items.filter((item) => standsOut(item, items)).map(({ count }) => count),
      [...offered],
    );
  });
