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

const shape = Type.Union([
  Type.Object({ kind: Type.Literal('circle'), radius: Type.Integer({ minimum: 1 }) }, { additionalProperties: false }),
  Type.Object(
    { kind: Type.Literal('square'), side: Type.Optional(Type.Integer({ default: 4 })) },
    { additionalProperties: false },
  ),
]);
const drawing = { input: Input({ shapes: Type.Array(shape) }) };

test('of a union with a tag the member that is meant is judged, and its defaults are filled in', (t) => {
  t.deepEqual(validateInput(drawing, { shapes: [{ kind: 'square' }] }), { shapes: [{ kind: 'square', side: 4 }] });
  const told = (one: unknown) => issues({ shapes: [one] }, drawing).map(({ path, keyword }) => `${path} ${keyword}`);
  t.deepEqual(told({ kind: 'circle', radius: 0 }), ['/shapes/0/radius minimum']);
  t.deepEqual(told({ kind: 'circle', radius: 1, side: 1 }), ['/shapes/0/side additionalProperties']);
  t.deepEqual(told({ kind: 'circle' }), ['/shapes/0/radius required']);
  t.true(told({ kind: 'line' }).includes('/shapes/0/kind discriminator'));
  t.true(told({ radius: 1 }).includes('/shapes/0/kind discriminator'));
  t.true(told('circle').includes('/shapes/0 type'));
});

test('what stands in place of a tag is not told back', (t) => {
  const [issue] = issues({ shapes: [{ kind: 'x'.repeat(1000) }] }, drawing);
  t.deepEqual(issue?.params, { error: 'mapping', tag: 'kind' });
});
