import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { root } from '../../../bin/lib/root.ts';
import { EnvError, type Role } from '../../../runtime/env.ts';
import { poolSizes } from '../../../runtime/pool-sizes.ts';
import { discoverServices, formerNames } from '../../../services/discover.ts';

test('a former name of a service in SERVICES runs the service, once, and is told', async (t) => {
  const services = ['site-waf', 'waf', 'bans'];
  t.deepEqual(formerNames(services), [{ former: 'site-waf', name: 'waf' }]);
  const { services: found } = await discoverServices({ role: 'all', services: [...services, '-housekeeping'] });
  t.deepEqual(
    found.map(({ name }) => name),
    ['waf', 'bans', 'relay', 'revision-fanout', 'canary-fanout', 'ban-fanout'],
  );
});

test('without SERVICES no name is a former one', (t) => {
  t.deepEqual(formerNames(null), []);
});

const named = async (...services: string[]) =>
  (await discoverServices({ role: 'all', services })).services.map(({ name }) => name).sort();

test('SERVICES=bans runs the bans, their jobs, their feed and the relay, and leaves out what is named with -', async (t) => {
  t.deepEqual(await named('bans'), ['ban-fanout', 'bans', 'own-jobs', 'relay']);
  t.deepEqual(await named('bans', '-relay', '-ban-fanout'), ['bans', 'own-jobs']);
  t.deepEqual(await named('bans', '-housekeeping', '-relay', '-ban-fanout'), ['bans']);
  t.deepEqual(await named('auth'), ['auth']);
});

test('the process of all jobs runs no jobs of its own services twice', async (t) => {
  t.false((await named('bans', 'housekeeping')).includes('own-jobs'));
});

test('what a process does not run is expected elsewhere', async (t) => {
  const { services, elsewhere } = await discoverServices({ role: 'all', services: ['auth'] });
  t.false(elsewhere.includes('auth'));
  for (const name of ['bans', 'api-gateway', 'housekeeping', 'node-channel']) t.true(elsewhere.includes(name), name);
  t.is(services.length, 1);
  t.deepEqual((await discoverServices({ role: 'all', services: null })).elsewhere, []);
});

test('SERVICES that only leaves out keeps the other services of the role, without jobs of its own', async (t) => {
  const { services, elsewhere } = await discoverServices({ role: 'app', services: ['-bans', '-site-waf'] });
  const all = await discoverServices({ role: 'app', services: null });
  t.deepEqual(
    services.map(({ name }) => name),
    all.services.map(({ name }) => name).filter((name) => name !== 'bans' && name !== 'waf'),
  );
  for (const name of ['bans', 'waf']) t.true(elsewhere.includes(name), name);
  const nothing = discoverServices({ role: 'channel', services: ['-node-channel'] });
  await t.throwsAsync(nothing, { instanceOf: EnvError });
});

for (const [role, services, expected] of [
  ['all', null, { api: 10, jobs: 4, bans: 6, channel: 6, ingest: 1 }],
  ['app', null, { api: 10, jobs: 1, bans: 6, channel: 1, ingest: 1 }],
  ['channel', null, { api: 10, jobs: 1, bans: 6, channel: 6, ingest: 1 }],
  ['worker', null, { api: 10, jobs: 4, bans: 3, channel: 4, ingest: 1 }],
  ['all', ['bans'], { api: 10, jobs: 2, bans: 6, channel: 4, ingest: 1 }],
  ['all', ['ban-fanout'], { api: 2, jobs: 1, bans: 1, channel: 4, ingest: 1 }],
] as const satisfies readonly (readonly ['all' | Role, string[] | null, object])[]) {
  test(`a process has the connections of docs/production.md: ${services ?? role}`, async (t) => {
    const found = await discoverServices({ role, services: services && [...services] });
    t.deepEqual(poolSizes(found.services.map(({ pools }) => pools)), expected);
  });
}

/** Prints the files of the repository that it imports. */
const IMPORTS = `
import { registerHooks } from 'node:module';
const seen = [];
registerHooks({ load(url, context, next) { seen.push(url); return next(url, context); } });
const { discoverServices, discoverFeeds } = await import(process.argv[1]);
await discoverServices(JSON.parse(process.argv[2]));
await discoverFeeds();
console.log(seen.flatMap((url) => /\\/services\\/([a-z-]+\\/.*[.]service[.]ts)$/.exec(url)?.[1] ?? []).join());
`;

for (const [asked, expected] of [
  [{ role: 'channel', services: null }, ['node-channel']],
  [
    { role: 'worker', services: null },
    [
      'acme-fanout',
      'ban-fanout',
      'canary-fanout',
      'housekeeping',
      'purge-fanout',
      'relay',
      'revision-fanout',
      'scheduler',
    ],
  ],
  [{ role: 'all', services: ['waf', '-relay'] }, ['canary-fanout', 'revision-fanout', 'waf']],
] as const) {
  test(`a process imports the services that it runs and no other: ${asked.services ?? asked.role}`, async (t) => {
    const discover = join(root, 'services', 'discover.ts');
    const args = ['--input-type=module', '--eval', IMPORTS, discover, JSON.stringify(asked)];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    t.deepEqual(
      stdout.trim().split(',').sort(),
      expected.map((name) => `${name}/${name}.service.ts`),
    );
  });
}
