import test from 'ava';
import { aliasesPrefix, segmentValue, splitTarget } from '../../../../services/api-gateway/request-target.ts';

test('only an origin-form target is a target', (t) => {
  t.deepEqual(splitTarget('/api/v1/sites?page=2?x'), { path: '/api/v1/sites', query: 'page=2?x' });
  t.deepEqual(splitTarget('/'), { path: '/', query: null });
  t.deepEqual(splitTarget('/a?'), { path: '/a', query: '' });
  for (const url of ['', '*', 'http://console.example/api/v1/sites', 'api', `/${'a'.repeat(9000)}`]) {
    t.is(splitTarget(url), null, url.slice(0, 20));
  }
});

test('a path input is taken as it is, or encoded exactly as encodeURIComponent does', (t) => {
  t.is(segmentValue('018f-abc_1.2~3'), '018f-abc_1.2~3');
  t.is(segmentValue('c=12,d=3'), 'c=12,d=3');
  t.is(segmentValue('ban=1:2'), 'ban=1:2');
  t.is(segmentValue('ban%3D1%3A2'), 'ban=1:2');
  t.is(segmentValue('%C3%A9'), 'é');
});

for (const segment of [
  '',
  '.',
  '..',
  '%2e',
  '%2E%2E',
  'a%2Fb',
  'a%2fb',
  'a%5Cb',
  'a\\b',
  '%61bc',
  '%c3%a9',
  '%',
  '%zz',
  '%FF',
  'a%00',
  'a%0Ab',
  'a b',
  'a"b',
  'é',
]) {
  test(`${JSON.stringify(segment)} is no path input`, (t) => {
    t.is(segmentValue(segment), null);
  });
}

const RESERVED = ['/api', '/rpc', '/downloads', '/install.sh', '/healthz'];

for (const path of [
  '/api',
  '/api/',
  '/api/v2/x',
  '/API/v1/sites',
  '//api/v1/sites',
  '/x/../api/v1/sites',
  '/./api/v1',
  '/%61pi/v1/sites',
  '/%2561pi/v1',
  '/x/%2e%2e/api',
  '/\\api/v1',
  '/api%2Fv1',
  '/rpc',
  '/healthz/',
  '/install.sh/',
  '/downloads/x',
  '/%',
]) {
  test(`${path} never falls back to the Web UI`, (t) => {
    t.true(aliasesPrefix(path, RESERVED));
  });
}

for (const path of ['/', '/sites', '/apis', '/assets/index-1a2b.js', '/setup', '/rpcs/x', '/sites/%C3%A9']) {
  test(`${path} may be the Web UI`, (t) => {
    t.false(aliasesPrefix(path, RESERVED));
  });
}
