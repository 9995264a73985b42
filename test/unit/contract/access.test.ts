// What each principal may call, against the specification's tables (Conventions, Authentication 2, 5 and 6).
import { readdirSync, readFileSync } from 'node:fs';
import test from 'ava';
import { PROCEDURES } from '../../../contract/index.ts';
import { type AnyProcedure, SCOPES, type Scope } from '../../../contract/procedure.ts';
import { accessRefusal } from '../../../services/api-gateway/credentials.ts';

const procedures = [...PROCEDURES.values()];
const namesOf = (chosen: AnyProcedure[]) => chosen.map(({ name }) => name).sort();
const built = (names: readonly string[]) => names.filter((name) => PROCEDURES.has(name)).sort();

// Authentication 5, by scope. `null` stands for accounts without any scope.
const SERVICE_ACCOUNTS: readonly (readonly [Scope | null, readonly string[]])[] = [
  [null, ['system.status', 'account.me', 'dns.catalog']],
  ['system:read', ['settings.get']],
  ['clusters:read', ['clusters.list', 'clusters.get']],
  ['sites:read', ['sites.list', 'sites.get', 'sites.launch', 'dns.siteTarget']],
  ['sites:write', ['sites.setEnabled']],
  ['usage:read', ['usage.list', 'usage.changes']],
];
// Authentication 6.
const PUBLIC = ['system.status', 'system.setup'];

const accountOf = (scopes: Scope[]) =>
  ({ kind: 'service_account', keyId: 'key', id: 'account', name: 'account', scopes }) as const;
const keyOf = (scope: 'read' | 'readwrite') =>
  ({ kind: 'access_key', keyId: 'key', id: 'key', name: 'key', scope }) as const;

test('a caller without credentials may call GET /system/status and POST /system/setup', (t) => {
  t.deepEqual(namesOf(procedures.filter(({ access }) => access === 'public')), built(PUBLIC));
});

for (const [scope, own] of SERVICE_ACCOUNTS) {
  test(`a service account with ${scope ?? 'no scope'} may call what the specification lists, and nothing else`, (t) => {
    const unscoped = SERVICE_ACCOUNTS[0]![1];
    const key = accountOf(scope === null ? [] : [scope]);
    const open = procedures.filter(({ access }) => access !== 'public');
    const allowed = open.filter((procedure) => accessRefusal(procedure, key) === null);
    const expected = new Set([...unscoped, ...own].filter((name) => !PUBLIC.includes(name)));
    t.deepEqual(namesOf(allowed), built([...expected]));
  });
}

test('a service account with every scope gets SERVICE_ACCOUNT_FORBIDDEN for every procedure that is not listed', (t) => {
  const listed = new Set([...PUBLIC, ...SERVICE_ACCOUNTS.flatMap(([, names]) => names)]);
  for (const procedure of procedures.filter(({ name }) => !listed.has(name))) {
    t.is(accessRefusal(procedure, accountOf([...SCOPES]))?.type, 'SERVICE_ACCOUNT_FORBIDDEN', procedure.name);
  }
});

test('an access key with read and write may call everything except creating access keys', (t) => {
  const refused = procedures.filter((procedure) => accessRefusal(procedure, keyOf('readwrite')) !== null);
  t.deepEqual(namesOf(refused), ['accessKeys.create']);
});

test('a read-only access key may call GET procedures and POST /rules/validate only', (t) => {
  const mayCall = procedures.filter(
    (procedure) => procedure.access !== 'public' && accessRefusal(procedure, keyOf('read')) === null,
  );
  const expected = procedures.filter(
    ({ method, path, access }) => access !== 'public' && (method === 'GET' || path === '/rules/validate'),
  );
  t.deepEqual(namesOf(mayCall), namesOf(expected));
});

test('every procedure declares its access in its own declaration and inherits it from no shared constant', (t) => {
  const folder = new URL('../../../contract/resources/', import.meta.url);
  for (const file of readdirSync(folder)) {
    const source = readFileSync(new URL(file, folder), 'utf8');
    // One block per declaration, up to its closing line.
    for (const [declaration] of source.matchAll(/^ {2}\w+: procedure\(\{\n[\s\S]*?^ {2}\}\),$/gm)) {
      t.regex(declaration, /^ {4}access: /m, `${file}: ${declaration.split('\n')[0]}`);
    }
    const declared = source.match(/^ {4}access: /gm)?.length ?? 0;
    t.is(source.match(/\baccess: /g)?.length ?? 0, declared, `${file}: access outside a declaration`);
  }
});
