import test from 'ava';
import Type from 'typebox';
import { ContractError, type Issue } from '../../../contract/errors.ts';
import { Input } from '../../../contract/scalars/common.ts';
import { validateInput } from '../../../mixins/validate.ts';

const procedure = {
  input: Input({
    name: Type.String({ maxLength: 5 }),
    list: Type.Optional(Type.Array(Type.String())),
    size: Type.Optional(Type.Integer({ default: 7 })),
  }),
};

function issues(input: unknown): Issue[] {
  try {
    validateInput(procedure, input);
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

test('text that the database cannot hold is refused where it stands', (t) => {
  t.deepEqual(issues({ name: 'a\0' }), [{ path: '/name', keyword: 'text', params: {} }]);
  t.deepEqual(issues({ name: 'a', list: ['b', '\ud800'] }), [{ path: '/list/1', keyword: 'text', params: {} }]);
  t.deepEqual(issues({ name: '😀' }), []);
});
