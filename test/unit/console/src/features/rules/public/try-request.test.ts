// What is typed of a request that is tried.
import test from 'ava';
import { headersOf, movedUrl, triedHost } from '../../../../../../../console/src/features/rules/public/try-request.ts';

test('a line is a header with its value, up to its first colon', (t) => {
  t.deepEqual(headersOf(['Referer: https://a.example/', 'X-Flag', ' Name :']), [
    { name: 'Referer', value: 'https://a.example/' },
    { name: 'X-Flag', value: '' },
    { name: 'Name', value: '' },
  ]);
});

test('the domain that is tried is one that can be asked', (t) => {
  t.is(triedHost(['*.a.example', 'a.example']), 'a.example');
  t.is(triedHost(['*.a.example']), 'www.a.example');
  t.is(triedHost([]), 'example.com');
});

test('an address of one site becomes that of another, an address of neither stays', (t) => {
  const moved = (url: string) => movedUrl(url, 'a.example', 'b.example');
  t.is(moved('https://a.example/x?y#z'), 'https://b.example/x?y#z');
  t.is(moved('http://a.example:8080'), 'http://b.example:8080');
  t.is(moved('https://a.example'), 'https://b.example');
  for (const url of ['https://a.example.com/', 'https://c.example/a.example', 'a.example/', '']) t.is(moved(url), url);
});
