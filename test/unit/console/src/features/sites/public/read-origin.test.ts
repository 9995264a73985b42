import test from 'ava';
import { originText, readOrigin } from '../../../../../../../console/src/features/sites/public/read-origin.ts';

for (const [text, expected] of [
  ['203.0.113.10', { address: '203.0.113.10', scheme: 'http' }],
  [' 203.0.113.10:8080 ', { address: '203.0.113.10', scheme: 'http', port: 8080 }],
  ['https://Origin.Example.com', { address: 'origin.example.com', scheme: 'https' }],
  ['https://origin.example.com:8443/', { address: 'origin.example.com', scheme: 'https', port: 8443 }],
  ['origin.example.com:443', { address: 'origin.example.com', scheme: 'https', port: 443 }],
  ['[2001:DB8::1]:81', { address: '2001:db8::1', scheme: 'http', port: 81 }],
  ['2001:db8::1', { address: '2001:db8::1', scheme: 'http' }],
  ['', null],
  ['https://', null],
  ['http://a.com/path', null],
  ['a.com:0', null],
  ['a.com:65536', null],
  ['a b.com', null],
  ['<b>', null],
  ['ftp://a.com', null],
] as const) {
  test(`an origin written as "${text}"`, (t) => {
    t.deepEqual(readOrigin(text), expected);
  });
}

test('an origin is written as people read it back', (t) => {
  const origin = { scheme: 'https', address: '2001:db8::1', port: 8443 };
  t.is(originText(origin), 'https://[2001:db8::1]:8443');
  t.deepEqual(readOrigin(originText(origin)), { scheme: 'https', address: '2001:db8::1', port: 8443 });
});
