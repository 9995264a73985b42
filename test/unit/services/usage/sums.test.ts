import test from 'ava';
import fc from 'fast-check';
import { csvLine, textCell } from '../../../../mixins/csv.ts';
import { usageParts } from '../../../../models/usage/usage-parts.ts';
import { bucketOf } from '../../../../services/usage/summary.ts';

const WINDOW = 300_000;
const DAY = 86_400_000;
const range = fc
  .tuple(fc.nat({ max: 10_000_000 }), fc.integer({ min: 1, max: 400 * 288 }))
  .map(([first, windows]) => ({ from: first * WINDOW, to: (first + windows) * WINDOW }));

test('a range is at most five parts, which follow each other and are aligned to what they sum', (t) => {
  fc.assert(
    fc.property(range, fc.constantFrom(300, 3600, 86_400), ({ from, to }, longest) => {
      const parts = usageParts(from, to, longest);
      let at = from;
      for (const part of parts) {
        const ms = part.seconds * 1000;
        if (part.from !== at || part.to <= part.from || part.from % ms !== 0 || part.to % ms !== 0) return false;
        at = part.to;
      }
      const short = parts.filter(({ seconds }) => seconds === 300);
      // Nothing is summed by windows for longer than an hour where hours may be used.
      const cheap = longest === 300 || short.every((part) => part.to - part.from < 3_600_000 || parts.length === 1);
      return at === to && parts.length <= 5 && parts.every(({ seconds }) => seconds <= longest) && cheap;
    }),
  );
  t.pass();
});

test('the shortest step that makes at most 400 points', (t) => {
  fc.assert(
    fc.property(range, ({ from, to }) => {
      const seconds = bucketOf({ from, to });
      const points = (step: number) => (to - from) / step / 1000;
      const shorter = { 300: null, 3600: 300, 86400: 3600 }[seconds];
      return points(seconds) <= 400 && (shorter === null || points(shorter!) > 400);
    }),
  );
  t.is(bucketOf({ from: 0, to: DAY }), 300);
  t.is(bucketOf({ from: 0, to: 7 * DAY }), 3600);
  t.is(bucketOf({ from: 0, to: 30 * DAY }), 86_400);
});

test('what looks like a formula stays a text in a cell of CSV', (t) => {
  for (const [text, cell] of [
    ['www.example.com', 'www.example.com'],
    ['=1+1', "'=1+1"],
    ['+1', "'+1"],
    ['-1', "'-1"],
    ['@SUM(A1)', "'@SUM(A1)"],
    ['\t=1', "'\t=1"],
    ['a, b', '"a, b"'],
    ['say "hi"', '"say ""hi"""'],
    ['two\nlines', '"two\nlines"'],
    ['\r=1', '"\'\r=1"'],
    ['', ''],
  ] as const) {
    t.is(textCell(text), cell);
  }
  t.is(csvLine(['a', 1, '2']), 'a,1,2\r\n');
});
