// A process that dies in the middle of a long job: another one continues, and there is one result.
import test from 'ava';
import pg from 'pg';
import { makeUsagePartitions } from '../../models/usage/usage-partitions.ts';
import { startTestConsole, startTestConsoleProcess } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { Api } from '../helpers/resources.ts';
import { withoutJobs } from '../helpers/without-jobs.ts';

const HOUR_MS = 3_600_000;
/** Of a day whose partition exists. */
const BEGIN = (Math.floor(Date.now() / HOUR_MS) - 50) * HOUR_MS;
const RANGE = { from: new Date(BEGIN).toISOString(), to: new Date(BEGIN + HOUR_MS).toISOString() };
/** Of several parts of the file. */
const RECORDS = 20_000;
const LOCK = 77_001;
/** Holds whoever stores the second part, for as long as the lock is held. */
const HOLD_SECOND_PART = `
  create function hold_second_part() returns trigger language plpgsql as $$
  begin
    if new.number = 1 then perform pg_advisory_xact_lock_shared(${LOCK}); end if;
    return new;
  end $$;
  create trigger hold_second_part before insert on long_job_part for each row execute function hold_second_part();
  select pg_advisory_lock(${LOCK})`;
/** Other advisory locks are waited for, too: this one says that the job runs. */
const HELD = `select pid from pg_locks
  where locktype = 'advisory' and objid = ${LOCK} and not granted
    and database = (select oid from pg_database where datname = current_database())`;

test('a worker is killed in the middle of an export: another one continues, and there is one file', async (t) => {
  const running = await startTestConsole({ env: withoutJobs() });
  t.teardown(() => running.stop());
  const { env } = running;
  const api = new Api(running);
  const database = new pg.Client({ connectionString: running.databaseUrl });
  await database.connect();
  t.teardown(() => database.end());
  await makeUsagePartitions(running.running.runtime.pools.api, new Date());
  await database.query(
    `insert into usage_record (window_start, site_id, requests, bytes_sent, bytes_received, seq, updated_at)
      select $1::timestamptz + (n % 12) * interval '5 minutes', 'z' || n, 1, 2, 3, nextval('usage_seq'), now()
        from generate_series(1, $2::int) n`,
    [RANGE.from, RECORDS],
  );
  await database.query(HOLD_SECOND_PART);
  const worker = async () => {
    const started = await startTestConsoleProcess({
      database: { url: running.databaseUrl },
      masterKey: env.SVC_MASTER_KEY!,
      redisPrefix: env.SVC_REDIS_PREFIX!,
      env: { ROLE: 'worker' },
    });
    t.teardown(() => started.stop());
    return started;
  };

  const first = await worker();
  const { id } = await api.ok('POST', '/usage/exports', RANGE);
  const holding = await eventually(async () => (await database.query<{ pid: number }>(HELD)).rows[0]?.pid, {
    what: 'the second part',
  });
  t.like(await api.ok('GET', `/jobs/${id}`), { state: 'running' });
  const second = await worker();
  await first.kill();
  // The database finishes the statement of the dead process, whose success nobody hears of.
  await database.query('select pg_advisory_unlock($1)', [LOCK]);
  await eventually(async () => {
    const { rows } = await database.query('select from pg_stat_activity where pid = $1', [holding]);
    return rows.length === 0;
  });
  t.is((await api.ok('GET', `/jobs/${id}`)).state, 'running', 'its lease holds for a minute');
  await database.query('update long_job set leased_until = now() where id = $1', [id]);
  const done = await eventually(async () => {
    const job = await api.ok('GET', `/jobs/${id}`);
    return job.state === 'done' && job;
  });
  t.like(done, { progress: 100, problem: null });

  const file = (await api.call('GET', `/jobs/${id}/file`)).body;
  t.is(file, (await api.call('GET', `/usage/export?from=${RANGE.from}&to=${RANGE.to}`)).body);
  t.is(file.split('\r\n').length, RECORDS + 2);
  const { rows } = await database.query('select number from long_job_part where job_id = $1 order by number', [id]);
  t.true(rows.length > 2, 'the second process wrote parts, too');
  t.deepEqual(
    rows.map(({ number }) => number),
    rows.map((_, index) => index),
  );
  t.is((await api.ok('GET', '/jobs')).total, 1);
  t.false(second.log().includes('long job failed'));
});
