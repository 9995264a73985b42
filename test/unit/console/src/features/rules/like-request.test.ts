import test from 'ava';
import { likeExpression, likeRule, triedStart } from '../../../../../../console/src/features/rules/like-request.ts';
import { checkCondition } from '../../../../../../contract/expression/expression.ts';

test('a rule like a request is about its method, host and path, whatever they contain', (t) => {
  const expression = likeExpression({ method: 'POST', host: 'shop.example', path: '/a"b\\c' });
  t.is(
    expression,
    'http.request.method eq "POST" and http.host eq "shop.example" and http.request.uri.path eq "/a\\"b\\\\c"',
  );
  t.is(likeExpression({ method: '', host: '', path: '' }), 'true');
  for (const path of ['/', '/a"b\\c', '/\u001b[31m', '/\u202e', '/é🎉', '/%00', '/a\tb'])
    t.like(checkCondition(likeExpression({ method: 'GET', host: 'a.example', path }), { phase: 'waf-custom' }), {
      valid: true,
    });
});

test('it is not enabled, and its name is as long as names may be', (t) => {
  const rule = likeRule({ method: 'GET', host: '', path: '/' }, 'x'.repeat(200), { kind: 'block', statusCode: 403 });
  t.false(rule.enabled);
  t.is(rule.name.length, 100);
});

test('a trial begins with what is known of the request', (t) => {
  t.deepEqual(triedStart({ method: 'GET', url: 'https://a.example/', ua: 'curl', address: ['x'] }), {
    ...{ method: 'GET', url: 'https://a.example/', address: '', country: '', asn: '', ja4: '' },
    headers: ['User-Agent: curl'],
  });
});
