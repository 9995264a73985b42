// Which field an error is about.
import test from 'ava';
import { CallError } from '../../../../../../console/src/shared/api/call-error.ts';
import { dotted, tellAt } from '../../../../../../console/src/shared/forms/problems.ts';
import { issuesOf } from '../../../../../../console/src/shared/forms/schema.ts';
import type { Issue } from '../../../../../../contract/errors.ts';
import { sites } from '../../../../../../contract/resources/sites.ts';

const issue = (path: string): Issue => ({ path, keyword: 'pattern', params: {} });
const refused = (...paths: string[]) =>
  new CallError('BAD_REQUEST', '', 400, { issues: paths.map(issue) }, 'request-1');
const toldPaths = (error: CallError | null, fields: readonly string[]) =>
  tellAt(error, fields).told.map(({ path }) => path);

test('an issue is told at the field that holds the value it names', (t) => {
  const error = refused('/name', '/origins/1/port');
  t.deepEqual(toldPaths(error, ['name', 'origins']), ['name', 'origins.1.port']);
  t.is(tellAt(error, ['name', 'origins']).rest, null);
});

test('what no field holds is left to tell beside them', (t) => {
  const { told, rest } = tellAt(refused('/name', '/expectedUpdatedAt'), ['name']);
  t.deepEqual(
    told.map(({ path }) => path),
    ['name'],
  );
  t.deepEqual(rest?.issues, [issue('/expectedUpdatedAt')]);
  t.deepEqual([rest?.code, rest?.status, rest?.requestId], ['BAD_REQUEST', 400, 'request-1']);
});

test('a field is not taken for another whose name begins the same', (t) => {
  const error = refused('/nameServer');
  t.deepEqual(toldPaths(error, ['name']), []);
  t.is(tellAt(error, ['name']).rest, error);
});

test('a code that judges one field is told there, where the form has that field', (t) => {
  const taken = new CallError('CLUSTER_NAME_TAKEN', '', 409, { name: 'edge' });
  t.deepEqual(toldPaths(taken, ['description', 'name']), ['name']);
  t.is(tellAt(taken, ['description']).rest, taken);
  const password = new CallError('INVALID_PASSWORD', '', 400);
  t.deepEqual(toldPaths(password, ['currentPassword', 'newPassword']), ['currentPassword']);
});

test('a code tells at which value it stands, where the server says so', (t) => {
  const path = '/origins/2/address';
  const forbidden = new CallError('ORIGIN_ADDRESS_FORBIDDEN', '', 400, { address: '127.0.0.1', path });
  t.deepEqual(toldPaths(forbidden, ['domains', 'origins']), ['origins.2.address']);
  t.is(tellAt(forbidden, ['domains']).rest, forbidden);
});

test('a failure of the console is no field’s fault', (t) => {
  const failed = new CallError('INTERNAL_SERVER_ERROR', '', 500, { id: 'request-1' }, 'request-1');
  t.deepEqual(tellAt(failed, ['name']), { told: [], rest: failed });
  t.deepEqual(tellAt(null, ['name']), { told: [], rest: null });
});

test('pointers are written with dots, whatever the names in them have', (t) => {
  t.is(dotted('/origins/0/port'), 'origins.0.port');
  t.is(dotted('/a~1b/c~0d'), 'a/b.c~d');
});

test('the contract names what is missing where it should be', (t) => {
  const found = issuesOf(sites.create.input as never, { origins: [{ address: '', port: 80 }] });
  t.deepEqual(
    found.map(({ path, keyword }) => [path, keyword]),
    [
      ['/domains', 'required'],
      ['/origins/0/address', 'minLength'],
    ],
  );
});
