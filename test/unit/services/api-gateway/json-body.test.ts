import test from 'ava';
import { MAX_DEPTH, parseJsonObject } from '../../../../services/api-gateway/json-body.ts';

interface Refusal {
  type: string;
  data: { issues: { path: string; keyword: string }[] };
}

function issueOf(body: Buffer): { path: string; keyword: string } {
  try {
    parseJsonObject(body);
  } catch (error) {
    const { type, data } = error as Refusal;
    if (type === 'BAD_REQUEST') return data.issues[0]!;
    throw error;
  }
  throw new Error('the body was accepted');
}

const nested = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;

test('an empty body is an empty object', (t) => {
  t.deepEqual(parseJsonObject(Buffer.alloc(0)), {});
});

test('objects are read', (t) => {
  t.deepEqual(parseJsonObject(Buffer.from('{"name":"é","list":[1,{"x":null}]}')), {
    name: 'é',
    list: [1, { x: null }],
  });
});

test('nesting is accepted up to the limit and no deeper', (t) => {
  t.notThrows(() => parseJsonObject(Buffer.from(nested(MAX_DEPTH))));
  t.is(issueOf(Buffer.from(nested(MAX_DEPTH + 1))).keyword, 'depth');
  t.is(issueOf(Buffer.from('['.repeat(100_000))).keyword, 'depth');
});

test('brackets inside strings do not nest', (t) => {
  const text = JSON.stringify({ a: `\\"${'{['.repeat(1000)}` });
  t.notThrows(() => parseJsonObject(Buffer.from(text)));
});

for (const [what, body, keyword] of [
  ['broken JSON', Buffer.from('{"a":'), 'json'],
  ['a trailing comma', Buffer.from('{"a":1,}'), 'json'],
  ['a byte order mark', Buffer.from('\ufeff{}'), 'json'],
  ['two values', Buffer.from('{}{}'), 'json'],
  ['an array', Buffer.from('[]'), 'type'],
  ['null', Buffer.from('null'), 'type'],
  ['a string', Buffer.from('"x"'), 'type'],
  ['a number', Buffer.from('1'), 'type'],
  ['invalid UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), 'utf8'],
  ['an overlong encoding', Buffer.from([0x7b, 0x22, 0xc0, 0xaf, 0x22, 0x3a, 0x31, 0x7d]), 'utf8'],
  ['a lone surrogate in UTF-8', Buffer.from([0x7b, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x3a, 0x31, 0x7d]), 'utf8'],
] as const) {
  test(`${what} is refused as ${keyword}`, (t) => {
    t.is(issueOf(body).keyword, keyword);
  });
}

for (const body of [
  '{"__proto__":{"admin":true}}',
  '{"a":{"__proto__":1}}',
  '{"a":[{"__proto__":1}]}',
  '{"\\u005f_proto__":1}',
  '{"\\u005F\\u005Fproto\\u005f\\u005f":1}',
]) {
  test(`the name __proto__ is refused in ${body}`, (t) => {
    const issue = issueOf(Buffer.from(body));
    t.is(issue.keyword, 'forbiddenName');
    t.true(issue.path.endsWith('/__proto__'));
    t.is(({} as { admin?: boolean }).admin, undefined);
  });
}

for (const [body, path] of [
  ['{"name":"a\\u0000b"}', '/name'],
  ['{"list":["ok",{"x":"\\u0000"}]}', '/list/1/x'],
  ['{"name":"\\ud800"}', '/name'],
  ['{"name":"\\udc00\\ud800"}', '/name'],
  ['{"a\\u0000":1}', ''],
] as const) {
  test(`${body} is refused: no database text`, (t) => {
    t.deepEqual({ ...issueOf(Buffer.from(body)) }, { path, keyword: 'unicode', params: {} } as never);
  });
}

test('escaped characters and whole surrogate pairs are text', (t) => {
  t.deepEqual(parseJsonObject(Buffer.from('{"name":"\\u00e9 \\ud83d\\ude00 \\\\u0000"}')), { name: 'é 😀 \\u0000' });
});

test('__proto__ is accepted as a value', (t) => {
  t.deepEqual(parseJsonObject(Buffer.from('{"a":"__proto__"}')), { a: '__proto__' });
});
