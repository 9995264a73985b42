import test from 'ava';
import Type from 'typebox';
import { Input, Nullable } from '../../../../contract/scalars/common.ts';
import { queryReader } from '../../../../services/api-gateway/query.ts';

const SCHEMA = Input({
  id: Type.String(),
  page: Type.Optional(Type.Integer()),
  enabled: Type.Optional(Type.Boolean()),
  search: Type.Optional(Type.String()),
  limit: Type.Optional(Nullable(Type.Integer())),
  kinds: Type.Optional(Type.Array(Type.String())),
});

const read = (query: string, method: 'GET' | 'POST' = 'GET') => {
  const input: Record<string, unknown> = {};
  queryReader(SCHEMA, ['id'], method)(query, input);
  return input;
};

const issueOf = (work: () => unknown): { path: string; keyword: string } => {
  try {
    work();
  } catch (error) {
    return (error as { data: { issues: { path: string; keyword: string }[] } }).data.issues[0]!;
  }
  throw new Error('the query was accepted');
};

test('values get the type of their schema', (t) => {
  t.deepEqual(read('page=2&enabled=true&search=a%20b+c&limit=-5&kinds=a,b'), {
    page: 2,
    enabled: true,
    search: 'a b c',
    limit: -5,
    kinds: ['a', 'b'],
  });
});

test('text that is no value of the type stays text, for the schema to refuse', (t) => {
  t.deepEqual(read('page=two&enabled=1&limit=1e3'), { page: 'two', enabled: '1', limit: '1e3' });
});

test('text fields are never turned into numbers', (t) => {
  t.deepEqual(read('search=12'), { search: '12' });
});

for (const [query, path] of [
  ['foo=1', '/foo'],
  ['id=other', '/id'],
  ['__proto__=1', '/__proto__'],
  ['Page=1', '/Page'],
  ['a/b=1', '/a~1b'],
] as const) {
  test(`the unknown parameter of ${query} is refused by name`, (t) => {
    t.like(
      issueOf(() => read(query)),
      { path, keyword: 'additionalProperties' },
    );
  });
}

test('a repeated parameter is refused by name', (t) => {
  t.like(
    issueOf(() => read('page=1&page=2')),
    { path: '/page', keyword: 'repeated' },
  );
});

for (const query of ['search=%', 'search=%ZZ', 'search=%FF', '%E0%A4%A=1']) {
  test(`the encoding of ${query} is refused`, (t) => {
    t.is(issueOf(() => read(query)).keyword, 'queryEncoding');
  });
}

test('a NUL is refused', (t) => {
  t.is(issueOf(() => read('search=a%00b')).keyword, 'unicode');
});

test('methods with a body take nothing from the query', (t) => {
  t.like(
    issueOf(() => read('search=x', 'POST')),
    { path: '/search', keyword: 'additionalProperties' },
  );
});
