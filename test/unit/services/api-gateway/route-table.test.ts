import test from 'ava';
import Type from 'typebox';
import { type HttpMethod, procedure, resource } from '../../../../contract/procedure.ts';
import { Input } from '../../../../contract/scalars/common.ts';
import { RouteTable } from '../../../../services/api-gateway/route-table.ts';

const declare = (method: HttpMethod, path: string) =>
  procedure({
    method,
    path,
    summary: '',
    input: Input({}),
    output: Type.Object({}),
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: [],
  });

const { list, latest, get, set, deep } = resource('things', {
  list: declare('GET', '/things'),
  latest: declare('GET', '/things/latest'),
  get: declare('GET', '/things/{id}'),
  set: declare('PUT', '/things/{id}/parts/{part}'),
  deep: declare('GET', '/things/{other}/latest/x'),
});
const table = new RouteTable([list, latest, get, set, deep]);
const found = (method: string, path: string) => {
  const match = table.match(method, path);
  return match && [match.route.procedure.name, match.params];
};

test('paths lead to their procedure with the inputs they carry', (t) => {
  t.deepEqual(found('GET', '/things'), ['things.list', {}]);
  t.deepEqual(found('GET', '/things/7'), ['things.get', { id: '7' }]);
  t.deepEqual(found('PUT', '/things/7/parts/a%20b'), ['things.set', { id: '7', part: 'a b' }]);
});

test('a literal goes before an input, which is tried when the literal leads nowhere', (t) => {
  t.deepEqual(found('GET', '/things/latest'), ['things.latest', {}]);
  t.deepEqual(found('PUT', '/things/latest/parts/1'), ['things.set', { id: 'latest', part: '1' }]);
  t.deepEqual(found('GET', '/things/7/latest/x'), ['things.deep', { other: '7' }]);
});

for (const [method, path] of [
  ['POST', '/things'],
  ['GET', '/things/'],
  ['GET', '/things//'],
  ['GET', '//things'],
  ['GET', '/'],
  ['GET', '/things/7/'],
  ['GET', '/things/7/parts'],
  ['get', '/things'],
  ['GET', '/things/..'],
  ['GET', '/constructor'],
  ['GET', '/__proto__'],
] as const) {
  test(`${method} ${path} leads nowhere`, (t) => {
    t.is(table.match(method, path), null);
  });
}

test('two procedures cannot share a method and path', (t) => {
  const { twin } = resource('twins', { twin: declare('GET', '/things/{name}') });
  t.throws(() => new RouteTable([get, twin]), { message: /things\.get/ });
});
