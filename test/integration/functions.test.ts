// Functions of the database: which file makes one anew, and two versions of the console on one database.
import { randomUUID } from 'node:crypto';
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import knexFactory, { type Knex } from 'knex';
import { ConsoleClient } from '../../bin/lib/console-client.ts';
import { root } from '../../bin/lib/root.ts';
import { applyFunctions, type FunctionFile, readFunctions } from '../../migrations/functions.ts';
import { startTestConsole, startTestConsoleProcess } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import type { Body } from '../helpers/resources.ts';
import { createTestDatabase, redisPrefix, type TestDatabase } from '../helpers/servers.ts';
import { temporaryFolder } from '../helpers/temporary-folder.ts';

let database: TestDatabase;
let knex: Knex;

test.before(async () => {
  database = await createTestDatabase();
  knex = knexFactory({ client: 'pg', connection: database.url, pool: { min: 0, max: 1 } });
});
test.after.always(async () => {
  await knex?.destroy();
  await database?.drop();
});

/** A function that answers `says`. */
function speaker(name: string, version: number, says: string, args = ''): FunctionFile {
  const sql = `-- version ${version}\ncreate or replace function ${name}(${args}) returns text language sql as $$ select '${says}' $$;\n`;
  return { file: `functions/${name}.sql`, name, version, sql };
}

async function said(name: string): Promise<string> {
  const { rows } = await knex.raw(`select ${name}() as says`);
  return rows[0].says;
}

// One after the other: only one process applies functions at a time.
test.serial('a function is made anew when its version is higher, and only then', async (t) => {
  t.deepEqual(await applyFunctions(knex, [speaker('greeting', 1, 'one?'), speaker('other', 1, 'x')]), [
    'greeting',
    'other',
  ]);
  t.is(await said('greeting'), 'one?');
  t.deepEqual(await applyFunctions(knex, [speaker('greeting', 1, 'one?'), speaker('other', 1, 'x')]), []);
  t.deepEqual(await applyFunctions(knex, [speaker('greeting', 2, 'two'), speaker('other', 1, 'x')]), ['greeting']);
  t.is(await said('greeting'), 'two');
});

test.serial('an older process that restarts never replaces a newer definition', async (t) => {
  await applyFunctions(knex, [speaker('kept', 3, 'newer')]);
  t.deepEqual(await applyFunctions(knex, [speaker('kept', 2, 'older')]), []);
  t.is(await said('kept'), 'newer');
});

test.serial('a text that differs without a higher version is refused with the name of its file', async (t) => {
  await applyFunctions(knex, [speaker('edited', 1, 'as released')]);
  await t.throwsAsync(applyFunctions(knex, [speaker('edited', 1, 'changed')]), {
    message: /functions\/edited\.sql differs from version 1 .* raise its version/,
  });
  t.is(await said('edited'), 'as released');
});

test.serial('a changed signature beside the same name is refused, and nothing of the release is applied', async (t) => {
  await applyFunctions(knex, [speaker('signed', 1, 'without arguments')]);
  const release = [speaker('before', 1, 'x'), speaker('signed', 2, 'with one', 'p_one text')];
  await t.throwsAsync(applyFunctions(knex, release), { message: /functions\/signed\.sql: .* a name of its own/ });
  await t.throwsAsync(said('before'), { message: /does not exist/ });
  t.is(await said('signed'), 'without arguments');
  const changedResult = { ...speaker('signed', 2, '1'), sql: speaker('signed', 2, '1').sql.replace('text', 'integer') };
  await t.throwsAsync(applyFunctions(knex, [changedResult]), { message: /functions\/signed\.sql: .*return type/s });
});

test.serial('a file defines the function of its name and begins with its version', async (t) => {
  const other = { ...speaker('mine', 1, 'x'), name: 'its_file' };
  await t.throwsAsync(applyFunctions(knex, [other]), { message: /does not define its_file/ });
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, 'some-name.sql'), speaker('some_name', 7, 'x').sql);
  t.like((await readFunctions(folder))[0], { file: 'functions/some-name.sql', name: 'some_name', version: 7 });
  writeFileSync(join(folder, 'without.sql'), 'create function without() …');
  await t.throwsAsync(readFunctions(folder), { message: /functions\/without\.sql does not begin with "-- version N"/ });
});

// Two versions -------------------------------------------------------------------------------------------------------

const PARTS = [
  'bin',
  'client',
  'contract',
  'migrations',
  'mixins',
  'models',
  'pipeline',
  'proto',
  'runtime',
  'services',
];

/**
 * The sources of the release after this one: it raised the version of one function, and gave another further arguments
 * and so another name.
 */
function nextRelease(folder: string): string {
  for (const part of [...PARTS, 'moleculer.config.ts', 'package.json']) {
    cpSync(join(root, part), join(folder, part), { recursive: true, filter: (path) => !/node_modules/.test(path) });
  }
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  const functions = join(folder, 'migrations', 'functions');
  rewrite(join(functions, 'ban-insert.sql'), /^-- version .*/, '-- version 1000\n-- Of the next release.');
  const text = readFileSync(join(functions, 'config-write.sql'), 'utf8');
  writeFileSync(join(functions, 'config-write-next.sql'), text);
  rewrite(
    join(functions, 'config-write-next.sql'),
    /function config_write\(/,
    'function config_write_next(p_new text, ',
  );
  const publish = join(folder, 'models', 'config', 'write-revision.ts');
  rewrite(publish, /select config_write\(/, 'select config_write_next(null, ');
  return folder;
}

function rewrite(file: string, what: RegExp, by: string): void {
  const before = readFileSync(file, 'utf8');
  const after = before.replace(what, by);
  if (after === before) throw new Error(`nothing to replace in ${file}`);
  writeFileSync(file, after);
}

test.serial(
  'two versions of the console publish and ban beside each other, and the older one may restart',
  async (t) => {
    const shared = await createTestDatabase();
    const sql = knexFactory({ client: 'pg', connection: shared.url, pool: { min: 0, max: 1 } });
    t.teardown(async () => {
      await sql.destroy();
      await shared.drop();
    });
    const options = { database: { url: shared.url }, redisPrefix: redisPrefix() };
    let older = await startTestConsole(options);
    t.teardown(() => older.stop());
    const restarted = { ...options, masterKey: older.env.SVC_MASTER_KEY! };
    const newer = await startTestConsoleProcess({ ...restarted, sources: nextRelease(temporaryFolder(t)) });
    t.teardown(() => newer.stop());
    const newerClient = new ConsoleClient(newer.url, newer.env.SVC_PUBLIC_URL!);
    newerClient.accessKey = older.client.accessKey;

    const clusterId = (await older.client.api<Body>('POST', '/clusters', { name: 'c' })).id;
    let count = 0;
    const revisions: string[] = [];
    // A starved machine meets the bounds on locks: the same call again, under its key.
    const call = (client: ConsoleClient, path: string, body: Body): Promise<Body> => {
      const headers = { 'idempotency-key': randomUUID() };
      return eventually(() => client.api<Body>('POST', path, body, headers), { what: path });
    };
    /** Sites are published and addresses banned through both at once. */
    const both = async (): Promise<void> => {
      const clients = [older.client, newerClient];
      await Promise.all(
        clients.map(async (client) => {
          const number = ++count;
          const site = { clusterId, domains: [`s${number}.example`], origins: [{ address: 'origin.example' }] };
          revisions.push((await call(client, '/sites', site)).revision);
          const ban = { scope: 'platform', cidr: `192.0.2.${number}`, reason: 'abuse', durationSeconds: 3600 };
          await call(client, '/bans', ban);
        }),
      );
    };
    await both();
    await older.stop();
    older = await startTestConsole({ ...restarted, setUp: false });
    older.client.accessKey = newerClient.accessKey;
    await both();

    t.is(new Set(revisions).size, 4);
    t.is((await older.client.api<Body>('GET', '/bans?source=manual')).total, 4);
    t.is((await newerClient.api<Body>('GET', '/sites')).total, 4);
    const { version } = await sql('function_version').where({ name: 'ban_insert' }).first();
    t.is(version, 1000);
    const { rows } = await sql.raw("select prosrc from pg_proc where proname in ('config_write', 'config_write_next')");
    t.is(rows.length, 2);
  },
);
