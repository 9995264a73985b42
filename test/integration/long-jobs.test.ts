// Long jobs: done in pieces by whichever process leases them, canceled, bounded, with a file that expires.
import { gzipSync } from 'node:zlib';
import test from 'ava';
import {
  addLongJob,
  endTooLarge,
  type LeasedJob,
  leaseLongJob,
  MAX_OPEN_OF_USER,
  noteLongJobFailure,
  purgeLongJobs,
  releaseLongJob,
  storeLongJobPart,
} from '../../models/jobs/long-job.ts';
import { makeUsagePartitions } from '../../models/usage/usage-partitions.ts';
import { LONG_JOBS } from '../../services/gen/long-jobs.ts';
import { workOnJobs } from '../../services/jobs/work.ts';
import { usageExportJob } from '../../services/usage/usage-export.job.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { Api, type Body } from '../helpers/resources.ts';
import { withoutJobs } from '../helpers/without-jobs.ts';

const HOUR_MS = 3_600_000;
/** Of a day whose partition exists. */
const BEGIN = (Math.floor(Date.now() / HOUR_MS) - 50) * HOUR_MS;
const RANGE = { from: new Date(BEGIN).toISOString(), to: new Date(BEGIN + HOUR_MS).toISOString() };
const RECORDS = 5000;
const QUERY = `?from=${RANGE.from}&to=${RANGE.to}`;

let running: TestConsole;
let api: Api;

test.before('start', async () => {
  running = await startTestConsole({ env: withoutJobs() });
  api = new Api(running);
  await makeUsagePartitions(sql(), new Date());
  await api.sql.raw(
    `insert into usage_record (window_start, site_id, requests, bytes_sent, bytes_received, seq, updated_at)
      select ?::timestamptz + (n % 12) * interval '5 minutes', 'z' || n, 1, 2, 3, nextval('usage_seq'), now()
        from generate_series(1, ?::int) n`,
    [RANGE.from, RECORDS],
  );
});
test.after.always('stop', () => running?.stop());

const sql = () => running.running.runtime.pools.api;
const start = (): Promise<Body> => api.ok('POST', '/usage/exports', RANGE);
const work = () => workOnJobs(running.running.runtime, LONG_JOBS, new AbortController().signal);
const lease = async (): Promise<LeasedJob> => (await leaseLongJob(sql(), ['usage_export']))!;
const fileOf = (id: string) => api.call('GET', `/jobs/${id}/file`);
const partsOf = async (id: string) => Number((await sql()('long_job_part').where({ job_id: id }).count())[0]!.count);

test.serial('an export job writes the file that the export returns, and the file expires', async (t) => {
  const job = await start();
  t.like(job, { kind: 'usage_export', state: 'waiting', progress: 0, fileName: null, fileExpiresAt: null });
  t.is((await fileOf(job.id)).body.code, 'JOB_FILE_UNAVAILABLE');
  await work();
  const done = await api.ok('GET', `/jobs/${job.id}`);
  t.like(done, { state: 'done', progress: 100, problem: null });
  t.regex(done.fileName, /^usage-\d{8}T\d{4}-\d{8}T\d{4}[.]csv$/);
  t.truthy(done.fileExpiresAt);
  const exported = (await api.call('GET', `/usage/export${QUERY}`)).body;
  const file = await fileOf(job.id);
  t.is(file.body, exported);
  t.is(exported.split('\r\n').length, RECORDS + 2);
  t.true(file.headers.get('content-disposition')!.includes(done.fileName));
  const { items, total } = await api.ok('GET', '/jobs');
  t.deepEqual([items[0], total], [done, 1]);
  await sql()('long_job')
    .where({ id: job.id })
    .update({ expires_at: new Date(Date.now() - 1000) });
  t.is((await fileOf(job.id)).body.code, 'JOB_FILE_UNAVAILABLE');
  await purgeLongJobs(sql());
  t.is(await partsOf(job.id), 0);
  t.like(await api.ok('GET', `/jobs/${job.id}`), { state: 'done', fileExpiresAt: null });
  await api.refused(t, [404, 'JOB_NOT_FOUND'], 'GET', '/jobs/nowhere');
  await api.refused(t, [400, 'USAGE_RANGE_INVALID'], 'POST', '/usage/exports', { ...RANGE, to: RANGE.from });
});

test.serial('a job whose process died continues at its last part, in another process', async (t) => {
  const { id } = await start();
  const kind = usageExportJob;
  const dead = await lease();
  t.is(await leaseLongJob(sql(), ['usage_export']), null, 'a leased job is worked on by one process');
  const piece = await kind.piece(running.running.runtime, RANGE, null);
  const part = { body: gzipSync(piece.text), next: piece.next, progress: 40, fileName: piece.fileName };
  t.true(await storeLongJobPart(sql(), dead, part));
  t.like(await api.ok('GET', `/jobs/${id}`), { state: 'running', progress: 40 });
  await sql()('long_job')
    .where({ id })
    .update({ leased_until: new Date(Date.now() - 1000) });
  await work();
  t.false(await storeLongJobPart(sql(), dead, part), 'the dead one stores nothing more');
  t.is((await fileOf(id)).body, (await api.call('GET', `/usage/export${QUERY}`)).body);
});

test.serial('a canceled job keeps no file, and ends for the process that works on it', async (t) => {
  const { id } = await start();
  const job = await lease();
  const part = { body: Buffer.from('x'), next: 'y', progress: 1, fileName: 'x.csv' };
  t.true(await storeLongJobPart(sql(), job, part));
  t.like(await api.ok('POST', `/jobs/${id}/cancel`), { state: 'cancelled', fileExpiresAt: null });
  t.false(await storeLongJobPart(sql(), job, part));
  t.is(await partsOf(id), 0);
  t.is((await fileOf(id)).body.code, 'JOB_FILE_UNAVAILABLE');
  await api.refused(t, [409, 'JOB_FINISHED'], 'POST', `/jobs/${id}/cancel`);
});

test.serial('a job fails with its third failure in a row, and with a file that is too large', async (t) => {
  const [failing, large] = [await start(), await start()];
  const first = await lease();
  for (const state of ['running', 'running', 'failed']) {
    await noteLongJobFailure(sql(), first);
    t.is((await api.ok('GET', `/jobs/${failing.id}`)).state, state);
  }
  t.is((await api.ok('GET', `/jobs/${failing.id}`)).problem, 'failed');
  await endTooLarge(sql(), await lease());
  t.like(await api.ok('GET', `/jobs/${large.id}`), { state: 'failed', problem: 'too_large' });
});

test.serial('open jobs of a user are bounded; jobs take turns', async (t) => {
  const jobs: Body[] = [];
  for (let count = 0; count < MAX_OPEN_OF_USER; count++) jobs.push(await start());
  t.like(await api.refused(t, [429, 'JOB_LIMIT'], 'POST', '/usage/exports', RANGE), { limit: MAX_OPEN_OF_USER });
  const other = { type: 'user', id: 'another', name: 'another' } as const;
  const theirs = await sql().transaction((trx) => addLongJob(trx, other, 'usage_export', RANGE));
  const first = await lease();
  t.is(first.id, jobs[0]!.id);
  await releaseLongJob(sql(), first);
  t.is((await lease()).id, jobs[1]!.id);
  await work();
  for (const id of [jobs[0]!.id, jobs[2]!.id, theirs!.id]) t.is((await api.ok('GET', `/jobs/${id}`)).state, 'done');
});
