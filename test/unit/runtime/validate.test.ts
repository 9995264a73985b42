import test from 'ava';
import Type from 'typebox';
import { ContractError, type Issue } from '../../../contract/errors.ts';
import { Input, OneOf } from '../../../contract/scalars/common.ts';
import { validateInput } from '../../../runtime/validate.ts';

const procedure = {
  input: Input({
    name: Type.String({ maxLength: 5 }),
    list: Type.Optional(Type.Array(Type.String())),
    size: Type.Optional(Type.Integer({ default: 7 })),
  }),
};

function issues(input: unknown, of: Parameters<typeof validateInput>[0] = procedure): Issue[] {
  try {
    validateInput(of, input);
  } catch (error) {
    if (error instanceof ContractError && error.type === 'BAD_REQUEST') return error.data.issues as Issue[];
    throw error;
  }
  return [];
}

test('defaults are filled in, the given object stays as it is', (t) => {
  const given = { name: 'a' };
  t.deepEqual(validateInput(procedure, given), { name: 'a', size: 7 });
  t.deepEqual(given, { name: 'a' });
});

test('an unknown and a missing field are named', (t) => {
  t.deepEqual(
    issues({ 'a/b~c': 1 }).map(({ path, keyword }) => [path, keyword]),
    [
      ['/name', 'required'],
      ['/a~1b~0c', 'additionalProperties'],
    ],
  );
});

test('at most 20 issues are answered', (t) => {
  t.is(issues({ name: 'a', list: new Array(1000).fill(1) }).length, 20);
});

const short = {
  input: Input({
    name: Type.String({ maxLength: 5 }),
    words: Type.Array(OneOf(['a', 'b']), { uniqueItems: true, maxItems: 2 }),
  }),
};
const told = (input: unknown) => issues(input, short).map(({ path, keyword }) => `${path} ${keyword}`);

test('of a small input every mistake is told', (t) => {
  t.deepEqual(told({ name: 'long name', words: ['a', 'a', 'b'], more: 1 }), [
    '/more additionalProperties',
    '/name maxLength',
    '/words maxItems',
    '/words uniqueItems',
  ]);
});

// Whoever sends much would otherwise decide how long the console is busy with telling him what is wrong with it.
test('of a large input only the first mistake is told, and what is too long is not looked through', (t) => {
  const different = Array.from({ length: 10_000 }, (_, index) => `word ${index}`);
  t.deepEqual(told({ name: 'a', words: different }), ['/words maxItems']);
  t.deepEqual(told({ name: 'a'.repeat(100_000), words: ['c'] }), ['/name maxLength']);
  const unknown = Object.fromEntries(different.map((name) => [name, 1]));
  t.is(told({ name: 'a', words: [], ...unknown }).length, 1);
});

test('text that the database cannot hold is refused where it stands', (t) => {
  t.deepEqual(issues({ name: 'a\0' }), [{ path: '/name', keyword: 'text', params: {} }]);
  t.deepEqual(issues({ name: 'a', list: ['b', '\ud800'] }), [{ path: '/list/1', keyword: 'text', params: {} }]);
  t.deepEqual(issues({ name: '😀' }), []);
});
