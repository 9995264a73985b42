// What the preview of a page shows in the place of placeholders.
import test from 'ava';
import { bytesOf, filledIn } from '../../../../../../console/src/features/pages/page-text.ts';

test('placeholders are replaced by example values, and anything else stays', (t) => {
  t.is(filledIn('{{status}} {{path}} {{host}}', 404), '404 /cart www.example.com');
  t.is(filledIn('{{other}} {status} {{ status }}', 404), '{{other}} {status} {{ status }}');
});

test('a page of a class is shown with a status that has no page of its own', (t) => {
  t.is(filledIn('{{status}}', '4xx'), '406');
  t.is(filledIn('{{status}}', '5xx'), '501');
});

test('the size of a page is counted in bytes of UTF-8', (t) => {
  t.is(bytesOf('aé🎉'), 7);
});
