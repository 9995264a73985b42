// Times and sizes as people type them.
import test from 'ava';
import fc from 'fast-check';
import { amountText, type Measure, readAmount } from '../../../../../../console/src/shared/controls/amount.ts';

const READ: readonly [text: string, measure: Measure, value: number | null][] = [
  ['90', 'seconds', 90],
  ['90s', 'seconds', 90],
  ['1h30m', 'seconds', 5400],
  [' 1 h 30 min ', 'seconds', 5400],
  ['1.5 h', 'seconds', 5400],
  ['0.5 min 30 s', 'seconds', 60],
  ['2 days', 'seconds', 172_800],
  ['30 分钟', 'seconds', 1800],
  ['1小时30分', 'seconds', 5400],
  ['1500', 'milliseconds', 1500],
  ['1.5s', 'milliseconds', 1500],
  ['1 min', 'milliseconds', 60_000],
  ['0', 'seconds', 0],
  ['2000ms', 'seconds', 2],
  ['500 ms', 'seconds', null],
  ['1.5', 'seconds', null],
  ['1h 30', 'seconds', null],
  ['1 fortnight', 'seconds', null],
  ['1,5 h', 'seconds', null],
  ['-1 h', 'seconds', null],
  ['', 'seconds', null],
  ['h', 'seconds', null],
  ['99999999999999999999', 'seconds', null],
  ['100 MiB', 'bytes', 104_857_600],
  ['100M', 'bytes', 104_857_600],
  ['100 mb', 'bytes', 100_000_000],
  ['1.5 GiB', 'bytes', 1_610_612_736],
  ['512', 'bytes', 512],
  ['512 B', 'bytes', 512],
  ['0.1 KiB', 'bytes', null],
];

for (const [text, measure, value] of READ)
  test(`“${text}” is ${value === null ? 'no number of' : value} ${measure}`, (t) => {
    t.is(readAmount(text, measure), value);
  });

const WRITTEN: readonly [value: number, measure: Measure, text: string][] = [
  [5400, 'seconds', '1 h 30 min'],
  [30, 'seconds', '30 s'],
  [86_400, 'seconds', '1 d'],
  [3661, 'seconds', '3661 s'],
  [60_000, 'milliseconds', '1 min'],
  [1500, 'milliseconds', '1 s 500 ms'],
  [104_857_600, 'bytes', '100 MiB'],
  [100_000_000, 'bytes', '100 MB'],
  [1_000_001, 'bytes', '1000001 B'],
  [0, 'bytes', '0'],
  [-1, 'seconds', '-1'],
];

for (const [value, measure, text] of WRITTEN)
  test(`${value} ${measure} are written ${text}`, (t) => {
    t.is(amountText(value, measure), text);
  });

for (const measure of ['milliseconds', 'seconds', 'bytes'] as const)
  test(`whatever is written of ${measure} is read as the same`, (t) => {
    fc.assert(
      fc.property(fc.maxSafeNat(), (value) => {
        t.is(readAmount(amountText(value, measure), measure), value);
      }),
    );
  });

test('no text makes it throw, and what it reads is a whole number', (t) => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'0159. hmskMGTiBdb分-,'), maxLength: 80 }), (text) => {
      const value = readAmount(text, 'seconds');
      t.true(value === null || (Number.isSafeInteger(value) && value >= 0));
    }),
  );
});
