// Backups and their restore on a real PostgreSQL: one moment, nothing half-written, clear refusals.
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { restoreBackup } from '../../bin/lib/backup/restore.ts';
import { migrate, migrationNames } from '../../migrations/run.ts';
import { OPTIONAL_TABLES } from '../../models/backups/optional-tables.ts';
import type { OptionalPart } from '../../runtime/backup/header.ts';
import { generateBackupKeys, parseSecretKey } from '../../runtime/backup/keys.ts';
import { readBackup } from '../../runtime/backup/read-backup.ts';
import { type WrittenBackup, writeBackup } from '../../runtime/backup/write-backup.ts';
import { createSealer } from '../../runtime/sealer.ts';
import { backupsIn, emptyDatabase, query, runCommand } from '../helpers/backup-commands.ts';
import { orAll } from '../helpers/long-form.ts';
import { addCluster, ban, createPipeline, publishThings } from '../helpers/pipeline.ts';
import { createTestDatabase } from '../helpers/servers.ts';
import { temporaryFolder } from '../helpers/temporary-folder.ts';

const WORKERS = 8;
const CHANGES = 1000;
/** Migrations that an older release did not have. */
const OLDER = 30;
const keys = generateBackupKeys();
const secret = parseSecretKey(keys.secretKey);

/** A database with rows enough that its backup has steps. */
let source: { url: string; drop(): Promise<void> };

test.before('fill a database', async () => {
  source = await createTestDatabase();
  await query(
    source.url,
    `insert into audit_entry (actor_type, actor_name, action, metadata)
       select 'system', E'tab\\t line\\n back\\\\slash', 'test', jsonb_build_object('n', n, 'text', md5(n::text))
         from generate_series(1, 60000) n;
     -- A day that the migrations of today do not make.
     select security_event_partition(current_date - 20);
     insert into security_event (occurred_at, node_id, site_id, kind, level, previous_level, top_ips, top_paths)
       values (current_date - 20 + time '12:00', 'n', 's', 'site_level', 1, 0, '[]', '[]');
     update console_state set master_key_fingerprint = '0123456789abcdef'`,
  );
});
test.after.always('drop', () => source?.drop());

const write = (
  to: string,
  {
    url = source.url,
    leftOut = [],
    recipients = [],
  }: { url?: string; leftOut?: OptionalPart[]; recipients?: string[] } = {},
): Promise<WrittenBackup> =>
  writeBackup({ databaseUrl: url, to, recipients, leftOut, optionalTables: OPTIONAL_TABLES, version: 'test' });

async function target(t: ExecutionContext): Promise<string> {
  const { url, drop } = await emptyDatabase();
  t.teardown(drop);
  return url;
}

const restore = (databaseUrl: string, file: string) => restoreBackup({ databaseUrl, file, secret, sealer: null });

test('a backup taken during 1,000 concurrent changes is one consistent moment', async (t) => {
  const { runtime, close } = await createPipeline();
  try {
    const folder = temporaryFolder(t);
    const clusters = await Promise.all([addCluster(runtime), addCluster(runtime)]);
    let [done, next] = [0, 0];
    const worker = async (name: number) => {
      for (let number = 0; next++ < CHANGES; number++) {
        // Of one worker each change is begun when the one before is committed, in another table.
        if (number % 2 === 0)
          await publishThings(runtime, clusters[name % 2]!, [{ id: `w${name}-${number}`, body: 'x' }]);
        else await ban(runtime, `w${name}-${number}`, `2001:db8:${name}::${number.toString(16)}/128`, null);
        done++;
      }
    };
    const changes = Promise.all(Array.from({ length: WORKERS }, (_, name) => worker(name)));
    const files: string[] = [];
    for (const share of [0.1, 0.5, 0.8]) {
      while (done < share * CHANGES) await new Promise((resolve) => setTimeout(resolve, 5));
      files.push((await write(folder, { url: runtime.env.databaseUrl })).file);
    }
    await changes;
    let last = 0;
    for (const file of files) {
      const url = await target(t);
      const contents = await readBackup(file, { secret: null });
      // Of the test alone; no migration makes it.
      t.true(contents.tables.has('test_thing'));
      await t.throwsAsync(restore(url, file), {
        message: /table or column that its migrations do not make: test_thing/,
      });
    }
    for (const file of files) {
      const seen = await idsOf(file);
      for (let name = 0; name < WORKERS; name++) {
        const numbers = seen.get(name) ?? [];
        t.deepEqual(numbers, Array.from(numbers.keys()), `changes of worker ${name} are all up to a moment`);
      }
      const count = [...seen.values()].reduce((sum, numbers) => sum + numbers.length, 0);
      t.true(count >= last);
      last = count;
    }
    t.true(last > 0);
  } finally {
    await close();
  }
});

/** Numbers of the changes in a backup by worker: things published and bans, each in order. */
async function idsOf(file: string): Promise<Map<number, number[]>> {
  const ids = new Set<string>();
  await readBackup(
    file,
    { secret: null },
    {
      async table({ table }, rows) {
        let text = '';
        for await (const piece of rows) text += piece;
        if (table === 'config_entry' || table === 'ban') for (const [id] of text.matchAll(/\bw\d+-\d+\b/g)) ids.add(id);
      },
    },
  );
  const found = new Map<number, number[]>();
  for (const id of ids) {
    const [name, number] = id.slice(1).split('-').map(Number) as [number, number];
    found.set(name, [...(found.get(name) ?? []), number]);
  }
  for (const numbers of found.values()) numbers.sort((a, b) => a - b);
  return found;
}

test('an encrypted backup restores every row, and parts that were left out stay empty', async (t) => {
  const folder = temporaryFolder(t);
  const whole = await write(folder, { recipients: [keys.publicKey] });
  t.is(statSync(whole.file).mode & 0o777, 0o600);
  t.false(readFileSync(whole.file).includes('audit_entry'));
  const url = await target(t);
  const restored = await restore(url, whole.file);
  t.is(restored.rows, whole.rows);
  const sums = 'select count(*)::int as rows, md5(string_agg(a::text, chr(10) order by id)) as sum from audit_entry a';
  const [before] = await query(source.url, sums);
  const [after] = await query(url, `${sums} where action <> 'system.restore'`);
  t.deepEqual(after, before);
  t.is((await query(url, 'select from security_event')).length, 1);
  // A later id than any of the backup.
  const [{ id }] = (await query<{ id: number }>(
    url,
    `select id::int from audit_entry where action = 'system.restore'`,
  )) as [{ id: number }];
  t.true(id > 60_000);
  const without = await write(folder, { leftOut: ['logs', 'statistics'] });
  t.false(without.tables.has('security_event'));
  t.false(without.tables.has('site_request_minute'));
  t.true(without.tables.has('usage_record'));
  const second = await target(t);
  await restore(second, without.file);
  t.is((await query(second, 'select from security_event')).length, 0);
});

test('a backup of an earlier release is migrated, one of a later release is refused', async (t) => {
  const old = await emptyDatabase();
  t.teardown(old.drop);
  const names = await migrationNames();
  await migrate(old.url, undefined, { only: new Set(names.slice(0, -3)) });
  await query(old.url, `insert into setting (key, value) values ('of-then', '1')`);
  const { file, header } = await write(temporaryFolder(t), { url: old.url });
  t.deepEqual(header.migrations, names.slice(0, -3));
  const url = await target(t);
  await restore(url, file);
  t.deepEqual(await query(url, `select value from setting where key = 'of-then'`), [{ value: 1 }]);
  t.deepEqual(
    (await query<{ name: string }>(url, 'select name from migration order by 1')).map(({ name }) => name),
    names,
  );
  await query(old.url, `insert into migration (name) values ('9999-later')`);
  const later = await write(temporaryFolder(t), { url: old.url });
  const empty = await target(t);
  await t.throwsAsync(restore(empty, later.file), { message: /newer release \(test\).*9999-later/ });
  t.is((await query(empty, `select from pg_class where relnamespace = 'public'::regnamespace`)).length, 0);
});

test('a restore that is killed while it migrates an older backup is unfinished, and runs again', async (t) => {
  const old = await emptyDatabase();
  t.teardown(old.drop);
  const names = await migrationNames();
  // Enough of them that the signal comes in their middle.
  await migrate(old.url, undefined, { only: new Set(names.slice(0, -OLDER)) });
  await query(old.url, `insert into setting (key, value) values ('of-then', '1')`);
  const { file } = await write(temporaryFolder(t), { url: old.url });
  const url = await target(t);
  const run = { args: ['--from', file], env: { DATABASE_URL: url } };
  const killed = await runCommand('restore', { ...run, at: { said: 'migrate:', signal: 'SIGKILL' } });
  t.is(killed.signal, 'SIGKILL');
  await t.throwsAsync(migrate(url), { message: /unfinished restore/ });
  const done = await runCommand('restore', run);
  t.is(done.code, 0, done.stderr);
  t.deepEqual(await query(url, `select value from setting where key = 'of-then'`), [{ value: 1 }]);
  t.deepEqual(
    (await query<{ name: string }>(url, 'select name from migration order by 1')).map(({ name }) => name),
    names,
  );
});

test('what cannot be restored is refused before the database is touched', async (t) => {
  const folder = temporaryFolder(t);
  const { file } = await write(folder, { recipients: [keys.publicKey] });
  const plain = (await write(folder)).file;
  const url = await target(t);
  const other = parseSecretKey(generateBackupKeys().secretKey);
  const tried = (from: string, key = secret) =>
    restoreBackup({ databaseUrl: url, file: from, secret: key, sealer: null });
  await t.throwsAsync(tried(file, other), { message: /is encrypted to svc-backup-public-.*; the key is that of/ });
  await t.throwsAsync(restoreBackup({ databaseUrl: url, file, secret: null, sealer: null }), { message: /--key FILE/ });
  await t.throwsAsync(tried(join(folder, 'none')), { message: /cannot be read \(ENOENT\)/ });
  const damage = join(folder, 'damaged');
  for (const intact of [file, plain]) {
    const bytes = readFileSync(intact);
    const places = [40, 400, Math.floor(bytes.length / 2), bytes.length - 1];
    for (const place of places) {
      const changed = Buffer.from(bytes);
      changed[place]! ^= 1;
      writeFileSync(damage, changed);
      await t.throwsAsync(tried(damage), { name: 'BackupError' }, `byte ${place}`);
    }
    for (const end of [0, 20, 3000, Math.floor(bytes.length / 2), bytes.length - 1]) {
      writeFileSync(damage, bytes.subarray(0, end));
      await t.throwsAsync(tried(damage), { message: /damaged/ }, `${end} bytes`);
    }
    writeFileSync(damage, Buffer.concat([bytes, Buffer.from('x')]));
    await t.throwsAsync(tried(damage), { message: /something follows/ });
  }
  writeFileSync(damage, readFileSync(plain).toString('latin1').replace('"format":1', '"format":2'), 'latin1');
  await t.throwsAsync(tried(damage), { message: /newer release wrote this backup \(format 2\)/ });
  const sealer = createSealer(randomBytes(32));
  await t.throwsAsync(restoreBackup({ databaseUrl: url, file: plain, secret: null, sealer }), {
    message: /sealed under the master key 0123456789abcdef/,
  });
  t.is((await query(url, `select from pg_class where relnamespace = 'public'::regnamespace`)).length, 0);
  await t.throwsAsync(restore(source.url, plain), { message: /not empty/ });
  await t.throwsAsync(write(plain), { message: /overwrite nothing/ });
  await t.throwsAsync(write(join(folder, 'no', 'folder')), { message: /does not exist/ });
  await t.throwsAsync(write(folder, { recipients: [`${keys.publicKey.slice(0, -1)}!`] }), {
    message: /not a public key/,
  });
});

test('a backup that is killed or canceled at any step leaves no file that passes for one', async (t) => {
  const env = { DATABASE_URL: source.url };
  const steps = [
    ['write:', 'SIGKILL'],
    ['verify:', 'SIGKILL'],
    ['write:', 'SIGINT'],
  ] as const;
  for (const [said, signal] of orAll(steps, ([step]) => step === 'write:')) {
    const folder = temporaryFolder(t);
    const ended = await runCommand('backup', { args: ['--to', folder], env, at: { said, signal } });
    // It may have ended before the signal came: then there is a whole one.
    for (const file of backupsIn(folder)) await t.notThrowsAsync(readBackup(file, { secret: null }), said);
    if (signal === 'SIGINT' && ended.code !== 0) {
      t.is(ended.code, 130);
      t.deepEqual(readdirSync(folder), []);
    }
  }
  const folder = temporaryFolder(t);
  const done = await runCommand('backup', { args: ['--to', folder, '--recipient', keys.publicKey], env });
  t.is(done.code, 0, done.stderr);
  t.deepEqual([done.stdout.trim()], backupsIn(folder));
  t.is((await runCommand('backup', { args: ['--to', folder, '--recipient'], env })).code, 2);
});

test('a restore that is killed at any step leaves a database that no console starts on, and runs again', async (t) => {
  const folder = temporaryFolder(t);
  const { file, rows } = await write(folder, { recipients: [keys.publicKey] });
  const keyFile = join(folder, 'key');
  writeFileSync(keyFile, `# a comment\n${keys.secretKey}\n`, { mode: 0o600 });
  const url = await target(t);
  const run = { args: ['--from', file, '--key', keyFile], env: { DATABASE_URL: url } };
  const steps = [
    ['tables:', 'SIGKILL'],
    ['rows:', 'SIGKILL'],
    ['rows:', 'SIGINT'],
    ['finish:', 'SIGKILL'],
  ] as const;
  for (const [said, signal] of orAll(steps, ([step]) => step === 'rows:')) {
    const ended = await runCommand('restore', { ...run, at: { said, signal } });
    if (ended.code === 0) continue;
    // The server may still be ending what the process had begun.
    const [{ marker }] = (await query<{ marker: boolean }>(
      url,
      `select to_regclass('restore_unfinished') is not null as marker`,
    )) as [{ marker: boolean }];
    if (!marker) break;
    await t.throwsAsync(migrate(url), { message: /unfinished restore/ });
    await t.throwsAsync(write(folder, { url }), { message: /unfinished restore/ });
  }
  const again = await emptiedOrUnfinished(url);
  if (again) {
    const done = await runCommand('restore', run);
    t.is(done.code, 0, done.stderr);
    t.false(`${done.stdout}${done.stderr}`.includes(keys.secretKey));
    t.true(done.stderr.includes(`with ${rows} rows`), done.stderr);
  }
  t.deepEqual(await migrate(url), []);
  t.is((await query(url, `select from audit_entry where action = 'test'`)).length, 60_000);
  t.is((await runCommand('restore', run)).code, 1);
});

async function emptiedOrUnfinished(url: string): Promise<boolean> {
  const [found] = await query<{ restored: boolean }>(
    url,
    `select to_regclass('console_state') is not null and to_regclass('restore_unfinished') is null as restored`,
  );
  return !found!.restored;
}

/** Mounting a small disk takes root. */
const asRoot = process.getuid!() === 0 ? test : test.skip;
asRoot('a full disk is named, and nothing is left on it', async (t) => {
  const disk = join(temporaryFolder(t), 'disk');
  mkdirSync(disk);
  t.is(spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'none', disk]).status, 0);
  t.teardown(() => spawnSync('umount', ['-l', disk]));
  await t.throwsAsync(write(disk), { message: /is full. No backup was made/ });
  t.deepEqual(readdirSync(disk), []);
});
