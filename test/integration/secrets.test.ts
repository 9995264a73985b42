// What is stored of secrets: sealed or hashed, never readable, and movable from one master key to the next.
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import pg from 'pg';
import { TEST_OPERATOR } from '../../bin/lib/console-client.ts';
import { root } from '../../bin/lib/root.ts';
import { SEALED_COLUMNS } from '../../runtime/reseal.ts';
import { totpCode } from '../helpers/authenticator.ts';
import { startTestConsole } from '../helpers/console.ts';
import { createTestDatabase, servers } from '../helpers/servers.ts';

const SEALED = '^1\\.[0-9a-f]{16}\\.[A-Za-z0-9_-]{80,}$';
const newKey = () => randomBytes(32).toString('base64');

interface TwoFactor {
  totpURI: string;
  backupCodes: string[];
}

interface TextColumn {
  table: string;
  column: string;
}

/** Every row of every table as text: what a dump of the database would show. */
async function everything(database: pg.Client): Promise<string> {
  const { rows: tables } = await database.query<{ name: string }>(
    `select quote_ident(table_name) as name from information_schema.tables
      where table_schema = 'public' and table_type = 'BASE TABLE'`,
  );
  const dumped = [];
  for (const { name } of tables) {
    const { rows } = await database.query<{ row: string }>(`select t::text as row from ${name} t`);
    dumped.push(...rows.map(({ row }) => row));
  }
  return dumped.join('\n');
}

async function sealedColumns(database: pg.Client): Promise<TextColumn[]> {
  const { rows: columns } = await database.query<TextColumn>(
    `select table_name as "table", column_name as "column" from information_schema.columns
      where table_schema = 'public' and data_type = 'text'`,
  );
  const found = [];
  for (const { table, column } of columns) {
    const { rows } = await database.query(`select 1 from "${table}" where "${column}" ~ $1 limit 1`, [SEALED]);
    if (rows.length > 0) found.push({ table, column });
  }
  return found;
}

const listed = ({ table, column }: TextColumn) => `${table}.${column}`;

async function inDatabase<T>(url: string, work: (database: pg.Client) => Promise<T>): Promise<T> {
  const database = new pg.Client({ connectionString: url });
  await database.connect();
  try {
    return await work(database);
  } finally {
    await database.end();
  }
}

test('a dump of the database contains no secret in clear', async (t) => {
  const console = await startTestConsole();
  t.teardown(() => console.stop());
  const { client } = console;
  const { items } = await client.api<{ items: { id: string }[] }>('GET', '/clusters');
  const enrollment = await client.api<{ token: string }>('POST', '/enrollment-tokens', { clusterId: items[0]!.id });
  const password = 'correct horse battery staple';
  const { body } = await client.auth<TwoFactor>('POST', '/two-factor/enable', { password });
  await client.auth('POST', '/two-factor/verify-totp', { code: totpCode(body.totpURI), trustDevice: true });
  const secrets: Record<string, string> = {
    'access key': client.accessKey,
    'session cookie': client.cookie.match(/svc_session_\w+=([\w-]+)/)![1]!,
    'cookie of a trusted device': client.cookie.match(/svc_trusted_device_\w+=([\w-]+)/)![1]!,
    'secret of an authenticator app': new URL(body.totpURI).searchParams.get('secret')!,
    'enrollment token': enrollment.token,
    'setup token': console.setupToken!,
    'master key': console.env.SVC_MASTER_KEY!,
    password,
  };
  await inDatabase(console.databaseUrl, async (database) => {
    const dump = await everything(database);
    t.true(dump.includes('operator@example.com'), 'the scan reads the rows');
    for (const [kind, secret] of Object.entries(secrets)) {
      t.true(secret.length >= 16, kind);
      t.false(dump.includes(secret), kind);
      // Without its prefix, and as bytea shows it.
      t.false(dump.includes(secret.slice(-20)), `end of ${kind}`);
      t.false(dump.includes(Buffer.from(secret).toString('hex')), `${kind} in hex`);
    }
    for (const code of body.backupCodes) t.false(dump.includes(code) || dump.includes(code.replace('-', '')));
    t.notRegex(dump, /PRIVATE KEY/);
    const sealed = await sealedColumns(database);
    t.true(sealed.length > 0);
    const known = SEALED_COLUMNS.map(listed);
    t.deepEqual(
      sealed.map(listed).filter((name) => !known.includes(name)),
      [],
      'columns with sealed secrets that resealing does not know',
    );
  });
});

test('the master key can be changed without losing a secret', async (t) => {
  const given = await servers();
  const database = await createTestDatabase(given);
  t.teardown(() => database.drop());
  const [oldKey, nextKey, strange] = [newKey(), newKey(), newKey()];
  const start = (env: Record<string, string>) =>
    startTestConsole({ database: { url: database.url }, env, setUp: false });

  const before = await start({ SVC_MASTER_KEY: oldKey });
  const { setupToken } = before;
  await before.stop();
  t.truthy(setupToken);

  await refusesKey(t, start({ SVC_MASTER_KEY: nextKey }));

  const changing = { SVC_MASTER_KEY: nextKey, SVC_MASTER_KEY_PREVIOUS: oldKey };
  const during = await start(changing);
  t.is(during.setupToken, setupToken, 'the previous key still opens what it sealed');
  await during.stop();

  t.is((await resealed(t, database.url, { SVC_MASTER_KEY: strange, SVC_MASTER_KEY_PREVIOUS: nextKey })).code, 1);
  const first = await resealed(t, database.url, changing);
  t.is(first.code, 0, first.output);
  t.regex(first.output, /^[1-9]\d* secrets were resealed/m);
  const again = await resealed(t, database.url, changing);
  t.regex(again.output, /^0 secrets were resealed/m);

  const after = await start({ SVC_MASTER_KEY: nextKey });
  t.is(after.setupToken, setupToken);
  await after.client.setUp(after.setupToken!);
  await after.stop();
  await refusesKey(t, start({ SVC_MASTER_KEY: oldKey }));
});

test('the second step outlives a change of the master key', async (t) => {
  const database = await createTestDatabase(await servers());
  t.teardown(() => database.drop());
  const [oldKey, nextKey] = [newKey(), newKey()];
  const start = (masterKey: string) => startTestConsole({ database: { url: database.url }, masterKey });
  const before = await start(oldKey);
  const { password, email } = TEST_OPERATOR;
  const { body } = await before.client.auth<TwoFactor>('POST', '/two-factor/enable', { password });
  await before.client.auth('POST', '/two-factor/verify-totp', { code: totpCode(body.totpURI) });
  await before.stop();
  const changing = { SVC_MASTER_KEY: nextKey, SVC_MASTER_KEY_PREVIOUS: oldKey };
  t.is((await resealed(t, database.url, changing)).code, 0);
  await inDatabase(database.url, (sql) => sql.query('update two_factor set last_step = null'));
  const after = await start(nextKey);
  t.teardown(() => after.stop());
  t.deepEqual((await after.client.auth('POST', '/sign-in/email', { email, password })).body, {
    twoFactorRedirect: true,
  });
  const code = totpCode(body.totpURI);
  t.is((await after.client.auth('POST', '/two-factor/verify-totp', { code })).status, 200);
});

async function refusesKey(t: ExecutionContext, starting: Promise<unknown>): Promise<void> {
  const error = (await t.throwsAsync(starting)) as Error;
  t.regex(`${error.message} ${(error.cause as Error)?.message}`, /not the key of this database/);
}

/** `npm run reseal` with these keys. */
async function resealed(t: ExecutionContext, databaseUrl: string, keys: Record<string, string>) {
  const env = { PATH: process.env.PATH, DATABASE_URL: databaseUrl, SVC_PUBLIC_URL: 'http://localhost:3000', ...keys };
  const run = promisify(execFile)(process.execPath, [join(root, 'bin', 'reseal.ts')], { env, timeout: 60_000 });
  const ended = await run.then(
    ({ stdout, stderr }) => ({ code: 0, output: stdout + stderr }),
    (error: { code: number; stdout: string; stderr: string }) => ({
      code: error.code,
      output: error.stdout + error.stderr,
    }),
  );
  for (const key of Object.values(keys)) t.false(ended.output.includes(key), 'the output shows no key');
  return ended;
}
