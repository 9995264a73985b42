// Backups that the console makes by itself: they are whole or not there, one at a time, and their history tells the truth.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { root } from '../../bin/lib/root.ts';
import { failAbandonedBackups } from '../../models/backups/backup.ts';
import { generateBackupKeys, parseSecretKey } from '../../runtime/backup/keys.ts';
import { readBackup } from '../../runtime/backup/read-backup.ts';
import { makeBackup } from '../../services/backups/make-backup.ts';
import { backupsIn } from '../helpers/backup-commands.ts';
import { startTestConsole, startTestConsoleProcess, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { Api, type Body } from '../helpers/resources.ts';
import { withoutJobs } from '../helpers/without-jobs.ts';

const { publicKey, secretKey } = generateBackupKeys();
/** Rows of the table that makes a backup take a while. */
const ROWS = 400_000;

let running: TestConsole;
let api: Api;
let base: string;

test.before('start', async () => {
  base = mkdtempSync(join(tmpdir(), 'svc-backups-'));
  running = await startTestConsole({ env: { ...withoutJobs(), SVC_BACKUP_DIRS: `${base},${root}` } });
  api = new Api(running);
});
test.after.always('stop', async () => {
  await running?.stop();
  rmSync(base, { recursive: true, force: true });
});

const make = (signal = new AbortController().signal) => makeBackup(running.running.runtime, signal);
const newest = async (): Promise<Body> => (await api.ok('GET', '/backups')).items[0];
const partials = (folder: string) => readdirSync(folder).filter((name) => name.endsWith('.partial'));
/** A folder of the test alone, and no history. */
async function fresh(name: string): Promise<string> {
  await api.sql('backup').delete();
  const folder = join(base, name);
  mkdirSync(folder);
  return folder;
}
const save = (settings: object) => api.ok('PUT', '/backups/settings', { publicKey, ...settings });
/** As if all backups had been made that long ago. */
const age = (hours: number) =>
  api.sql.raw(
    `update backup set started_at = started_at - ? * interval '1 hour', ended_at = ended_at - ? * interval '1 hour',
       created_at = created_at - ? * interval '1 hour'`,
    [hours, hours, hours],
  );

test.serial('a schedule needs a folder that is allowed and a public key', async (t) => {
  const put = async (body: object) => {
    const { status, body: answer } = await api.call('PUT', '/backups/settings', body);
    return `${status} ${answer.code} ${answer.data?.reason ?? ''}`.trim();
  };
  t.is(await put({ enabled: true }), '409 BACKUP_NOT_SET');
  t.is(await put({ enabled: true, folder: base }), '409 BACKUP_NOT_SET');
  t.is(await put({ publicKey: 'svc-backup-public-x' }), '400 BACKUP_KEY_INVALID');
  t.is(await put({ publicKey: secretKey }), '400 BACKUP_KEY_INVALID');
  t.is(await put({ folder: '/etc' }), '400 BACKUP_FOLDER_REFUSED not_allowed');
  t.is(await put({ folder: join(root, 'docs') }), '400 BACKUP_FOLDER_REFUSED program');
  t.is(await put({ folder: 'backups' }), '400 BAD_REQUEST');
  t.is(await put({ intervalHours: 169 }), '400 BAD_REQUEST');
  const { status, body } = await api.call('POST', '/backups', {});
  t.is(`${status} ${body.code}`, '409 BACKUP_NOT_SET');
  const saved = await save({ folder: `${base}/` });
  t.like(saved, { enabled: false, folder: base, intervalHours: 24, keepBy: 'copies', keep: 30 });
  t.is(await put({ expectedUpdatedAt: '2026-01-01T00:00:00Z' }), '409 UPDATED_AT_MISMATCH');
  t.deepEqual(await api.ok('GET', '/backups/settings'), saved);
  const [entry] = await api.sql('audit_entry').where({ action: 'backup.settings_update' });
  t.is(entry.metadata.folder, base);
  t.deepEqual((await api.ok('GET', '/backups/status')).folders, [base, root]);
});

test.serial('a backup that is due is made once, encrypted, whole and in the history', async (t) => {
  const folder = await fresh('due');
  await save({ enabled: true, folder, withoutLogs: true });
  t.truthy((await api.ok('GET', '/backups/status')).nextAt);
  await make();
  const done = await newest();
  t.like(done, { cause: 'schedule', state: 'done', verified: true, problem: null, folder, deletedAt: null });
  const [file] = backupsIn(folder);
  t.is(file, join(folder, done.fileName));
  const { tables, header } = await readBackup(file!, { secret: parseSecretKey(secretKey) }, {});
  t.true(tables.has('site') && !tables.has('security_event'));
  t.deepEqual(header.leftOut, ['logs']);
  t.is(
    [...tables.values()].reduce((sum, { rows }) => sum + rows, 0),
    done.rows,
  );
  t.is((await api.ok('GET', '/backups/status')).lastGoodAt, done.startedAt);
  await make();
  t.is((await api.ok('GET', '/backups')).total, 1);
  await age(24);
  await make();
  t.is((await api.ok('GET', '/backups')).total, 2);
  t.is(backupsIn(folder).length, 2);
});

test.serial('replaced files are deleted, the newest and those of others stay', async (t) => {
  const folder = await fresh('kept');
  const own = join(folder, 'console-20200101T000000Z-00000000.svcbackup');
  writeFileSync(own, 'made by hand');
  await save({ enabled: true, folder, keep: 2 });
  for (let count = 0; count < 3; count++) {
    await make();
    await age(24);
  }
  const rows: Body[] = (await api.ok('GET', '/backups')).items;
  t.deepEqual(
    rows.map(({ deletedAt, fileName }) => [deletedAt === null, existsSync(join(folder, fileName))]),
    [
      [true, true],
      [true, true],
      [false, false],
    ],
  );
  await save({ enabled: true, folder, keepBy: 'days', keep: 1 });
  await age(1000);
  await make();
  t.is(backupsIn(folder).length, 2);
  t.true(existsSync(own) && existsSync(join(folder, (await newest()).fileName)));
});

test.serial('a backup that was asked for is one at a time, and refused where it cannot be', async (t) => {
  const folder = await fresh('asked');
  await save({ folder });
  const waiting = await api.ok('POST', '/backups', {});
  t.like(waiting, { cause: 'request', state: 'waiting' });
  const again = await api.call('POST', '/backups', {});
  t.is(`${again.status} ${again.body.code}`, '409 BACKUP_RUNNING');
  await Promise.all([make(), make()]);
  t.like(await newest(), { id: waiting.id, state: 'done' });
  t.is(backupsIn(folder).length, 1);
  t.is((await api.sql('audit_entry').where({ action: 'backup.run' })).length, 1);
  await api.ok('POST', '/backups', {});
  await api
    .sql('backup')
    .where({ state: 'waiting' })
    .update({ created_at: new Date(0) });
  await failAbandonedBackups(api.sql);
  t.is((await api.sql('backup').where({ problem: 'no_process', state: 'failed' })).length, 1);
});

test.serial('a backup without its folder fails, and is tried again later', async (t) => {
  const folder = await fresh('gone');
  await save({ enabled: true, folder });
  renameSync(folder, `${folder}-away`);
  await make();
  t.like(await newest(), { state: 'failed', problem: 'folder', verified: false, fileName: null });
  renameSync(`${folder}-away`, folder);
  await make();
  t.is((await api.ok('GET', '/backups')).total, 1);
  await age(1);
  await make();
  t.like(await newest(), { state: 'done' });
});

test.serial('a backup that is stopped or killed leaves no file with a final name, and is called failed', async (t) => {
  await api.sql.raw(
    `create table large as select n, md5(n::text) || md5((n + 1)::text) || md5((n + 2)::text) as t from generate_series(1, ?) n`,
    [ROWS],
  );
  const folder = await fresh('cut');
  await save({ folder });
  /** Until one is interrupted while its file is written. */
  const cut = async (begin: () => Promise<() => Promise<unknown>>) => {
    for (;;) {
      const { id } = await api.ok('POST', '/backups', {});
      const interrupt = await begin();
      await eventually(async () => partials(folder).length > 0 || (await newest()).endedAt !== null, {
        what: 'a file that is written',
        everyMs: 5,
      });
      await interrupt();
      if ((await newest()).state !== 'done') return id;
      await api.sql('backup').delete();
      for (const file of backupsIn(folder)) rmSync(file);
    }
  };

  const stopped = await cut(async () => {
    const stop = new AbortController();
    const ended = make(stop.signal);
    return () => {
      stop.abort();
      return ended;
    };
  });
  t.like(await newest(), { id: stopped, state: 'failed', problem: 'stopped' });
  t.deepEqual([backupsIn(folder), partials(folder)], [[], []]);

  const killed = await cut(async () => {
    const worker = await startTestConsoleProcess({
      database: { url: running.databaseUrl },
      masterKey: running.env.SVC_MASTER_KEY!,
      redisPrefix: running.env.SVC_REDIS_PREFIX!,
      env: { ROLE: 'worker', SVC_BACKUP_DIRS: base },
    });
    t.teardown(() => worker.stop());
    return () => worker.kill();
  });
  t.like(await newest(), { id: killed, state: 'running' });
  t.deepEqual(backupsIn(folder), []);
  t.is(partials(folder).length, 1);
  const refused = await api.call('POST', '/backups', {});
  t.is(refused.body.code, 'BACKUP_RUNNING');
  await api
    .sql('backup')
    .where({ id: killed })
    .update({ leased_until: new Date(0) });
  await failAbandonedBackups(api.sql);
  t.like(await newest(), { id: killed, state: 'failed', problem: 'interrupted', verified: false });
  await api.ok('POST', '/backups', {});
  await make();
  t.like(await newest(), { state: 'done' });
  t.is(backupsIn(folder).length, 1);
});

test.serial('metrics say when the last good backup was made, and when the next one is late', async (t) => {
  const { metrics } = running.running.runtime;
  const shownBy = async (name: string) => (await metrics.getSingleMetric(name)!.get()).values[0]?.value;
  const shown = () =>
    Promise.all(['svc_backup_last_good_timestamp_seconds', 'svc_backup_late_timestamp_seconds'].map(shownBy));
  const folder = await fresh('metrics');
  t.deepEqual(await shown(), [undefined, undefined]);
  await save({ enabled: true, folder, intervalHours: 24 });
  await make();
  const { startedAt } = await newest();
  const began = Date.parse(startedAt) / 1000;
  const [lastGood, late] = await shown();
  t.is(lastGood, began);
  t.is(late, began + 26 * 3600);
  await save({ enabled: false, folder });
  t.deepEqual(await shown(), [began, undefined]);
});
