import test from 'ava';
import { expectedSeconds } from '../../../../../../console/src/features/protection/difficulty.ts';

test('each bit doubles the time, and a phone takes longer than a desktop', (t) => {
  for (let bits = 8; bits < 26; bits++)
    for (const device of ['phone', 'desktop'] as const)
      t.is(expectedSeconds(bits + 1, device), 2 * expectedSeconds(bits, device));
  t.true(expectedSeconds(20, 'phone') > 1 && expectedSeconds(20, 'phone') < 4);
  t.true(expectedSeconds(20, 'desktop') < 1);
});
