import test from 'ava';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { Api } from '../helpers/resources.ts';

let running: TestConsole;
let api: Api;

test.before('start', async () => {
  running = await startTestConsole();
  api = new Api(running);
});
test.after.always('stop', () => running?.stop());

const validate = (expression: string, more: Record<string, unknown> = { phase: 'waf-custom' }) =>
  api.ok('POST', '/rules/validate', { expression, ...more });

test('a valid expression has position 0 and an empty message', async (t) => {
  const valid = { valid: true, position: 0, message: '' };
  t.deepEqual(await validate('http.host eq "a" and not ip.src in {10.0.0.0/8}'), valid);
  t.deepEqual(await validate('concat("/v2", http.request.uri.path)', { phase: 'redirect', kind: 'value' }), valid);
  t.deepEqual(await validate('http.response.code ge 500', { phase: 'compression' }), valid);
  t.deepEqual(await validate('true', {}), valid);
});

test('an invalid one has the code, the position and the parameters as strings', async (t) => {
  t.like(await validate('http.hots eq "a"'), { valid: false, position: 0, code: 'unknown_field', params: {} });
  const number = await validate('http.host gt 5');
  t.like(number, { valid: false, position: 10, code: 'ordered_comparison' });
  t.is(number.message, 'Only numbers can be compared by order.');
  t.like(await validate('(true'), { position: 5, code: 'unexpected_end' });
  t.like(await validate('http.request.headers eq "a"'), { code: 'expected_token', params: { token: '[' } });
  const substring = await validate('substring(http.host, 70000) eq "a"');
  t.deepEqual(substring.params, { min: '-65536', max: '65536' });
});

test('the phase decides which fields can be read; for a cacheRule it counts for nothing', async (t) => {
  const source = 'http.response.code eq 404';
  t.like(await validate(source, { phase: 'cache' }), { code: 'response_field' });
  t.like(await validate(source, { phase: 'response-transform' }), { valid: true });
  t.like(await validate(source, { phase: 'response-transform', kind: 'cacheRule' }), { code: 'response_field' });
  t.like(await validate(source, { phase: 'response-transform', kind: 'value' }), { code: 'value_not_string' });
});

test('an expression of a rule has 4096 characters, the condition of a cache rule 16384, and no body has more', async (t) => {
  const long = `true${' '.repeat(5000)}`;
  t.like(await validate(long), { code: 'too_long', position: 4096, params: { max: '4096' } });
  t.like(await validate(long, { kind: 'cacheRule' }), { valid: true });
  const longer = { expression: 'a'.repeat(16_385), kind: 'cacheRule' };
  t.is((await api.call('POST', '/rules/validate', longer)).status, 400);
  // As many characters, of which each is two code units.
  t.like(await validate('😀'.repeat(16_384), { kind: 'cacheRule' }), { code: 'too_long', position: 16_384 });
});

test('an IP list that an expression names has to be there', async (t) => {
  t.like(await validate('ip.src in $offices'), { code: 'unknown_list', position: 10, params: { list: 'offices' } });
  await api.ok('POST', '/ip-lists', { name: 'offices', kind: 'collection', entries: ['192.0.2.0/24'] });
  t.like(await validate('ip.src in $offices'), { valid: true });
  t.like(await validate('ip.src in $offices', { kind: 'cacheRule' }), { valid: true });
});

test('a read-only key may validate, a service account may not', async (t) => {
  const reader = await running.client.rpc<{ secret: string }>('accessKeys.create', { name: 'reader', scope: 'read' });
  const account = await api.ok('POST', '/service-accounts', { name: 'robot', scopes: ['sites:write'] });
  const { secret } = await api.ok('POST', `/service-accounts/${account.id}/keys`, { name: 'one' });
  const call = (key: string) =>
    running.client.request<{ code?: string }>(
      'POST',
      '/api/v1/rules/validate',
      { expression: 'true' },
      { 'x-api-key': key },
    );
  t.is((await call(reader.secret)).status, 200);
  const refused = await call(secret);
  t.is(`${refused.status} ${refused.body.code}`, '403 SERVICE_ACCOUNT_FORBIDDEN');
});
