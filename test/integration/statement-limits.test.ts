// How long one statement of a request may take, and what ends it before.
import { EventEmitter } from 'node:events';
import test from 'ava';
import type { Knex } from 'knex';
import pg from 'pg';
import { errorCodeOf } from '../../contract/errors.ts';
import { Recent } from '../../models/db/recent.ts';
import { REQUEST_MS } from '../../moleculer.config.ts';
import { forClient, withinRequest } from '../../runtime/request-scope.ts';
import { eventually } from '../helpers/eventually.ts';
import { change, createPipeline, type Pipeline } from '../helpers/pipeline.ts';

const QUERY_CANCELED = '57014';
const LONG_MS = 600_000;

let pipeline: Pipeline;
let api: Knex;
/** Holds the lock that statements wait for. */
let holder: pg.Client;

test.before(async () => {
  pipeline = await createPipeline();
  api = pipeline.runtime.pools.api;
  holder = new pg.Client({ connectionString: pipeline.runtime.env.databaseUrl });
  await holder.connect();
});
test.after.always(async () => {
  await holder?.end();
  await pipeline?.close();
});

test.serial('a statement of a request ends before the request does', async (t) => {
  for (const pool of [api, pipeline.runtime.pools.bans]) {
    const { rows } = await pool.raw("select setting::int as ms from pg_settings where name = 'statement_timeout'");
    t.true(rows[0].ms > 0 && rows[0].ms < REQUEST_MS, `${rows[0].ms} ms`);
  }
});

test.serial('a statement that takes longer answers that the service is unavailable', async (t) => {
  const error = await t.throwsAsync(
    change(pipeline.runtime, (tx) => tx.sql.raw('set local statement_timeout = 1; select pg_sleep(60)')),
  );
  t.is(errorCodeOf(error), 'SERVICE_UNAVAILABLE');
});

/** Waits for the lock without a limit of the database; returns the process of the connection to `pids` first. */
const waits = (pids: number[] = []) =>
  api.transaction(async (trx) => {
    const { rows } = await trx
      .raw('set local statement_timeout = 0; set local lock_timeout = 0')
      .then(() => trx.raw<{ rows: { pid: number }[] }>('select pg_backend_pid() as pid'));
    pids.push(rows[0]!.pid);
    await trx.raw('select pg_advisory_xact_lock(1)');
    return 'done';
  });

const states = async (where: string) => {
  const text = `select count(*)::int as count from pg_stat_activity where datname = current_database() and ${where}`;
  return (await holder.query<{ count: number }>(text)).rows[0]!.count;
};
const waiting = () => states("wait_event_type = 'Lock'");
const until = (count: number) => eventually(async () => (await waiting()) === count, { what: `${count} waiting` });
const hold = () => holder.query('select pg_advisory_lock(1)');
const release = () => holder.query('select pg_advisory_unlock(1)');

test.serial(
  'when the time of a call is over, its statement is canceled and its connection is not used again',
  async (t) => {
    await hold();
    const pids: number[] = [];
    await t.throwsAsync(
      withinRequest(300, false, () => waits(pids)),
      { code: QUERY_CANCELED },
    );
    await until(0);
    // More than the pool has connections.
    const { rows } = await api.raw('select pg_backend_pid() as pid');
    const used = await Promise.all(Array.from({ length: 30 }, () => api.raw('select pg_backend_pid() as pid')));
    t.false([rows, ...used.map((one) => one.rows)].flat().some(({ pid }) => pids.includes(pid)));
    await release();
  },
);

test.serial('when the client of a read goes away, its statement is canceled', async (t) => {
  await hold();
  const response = new EventEmitter();
  const call = forClient(response, () => withinRequest(LONG_MS, true, () => waits()));
  await until(1);
  response.emit('close');
  await t.throwsAsync(call, { code: QUERY_CANCELED });
  await until(0);
  await release();
  t.is(response.listenerCount('close'), 0);
});

test.serial('a write goes on when its client goes away', async (t) => {
  await hold();
  const response = new EventEmitter();
  const call = forClient(response, () => withinRequest(LONG_MS, false, () => waits()));
  await until(1);
  response.emit('close');
  await release();
  t.is(await call, 'done');
});

test.serial('an answer that others share does not end with the client that asked first', async (t) => {
  await hold();
  const recent = new Recent<string>(LONG_MS);
  const response = new EventEmitter();
  const ask = (client: EventEmitter) =>
    forClient(client, () => withinRequest(LONG_MS, true, () => recent.get(() => waits())));
  const calls = [ask(response), ask(new EventEmitter())];
  await until(1);
  response.emit('close');
  await release();
  t.deepEqual(await Promise.all(calls), ['done', 'done']);
});

test.serial('no statement begins after the end of a call, and its transaction is rolled back', async (t) => {
  const response = new EventEmitter();
  const call = forClient(response, () =>
    withinRequest(LONG_MS, true, () =>
      api.transaction(async (trx) => {
        await trx.raw('create table begun (id integer)');
        response.emit('close');
        await trx.raw('select 1');
      }),
    ),
  );
  await t.throwsAsync(call, { code: QUERY_CANCELED });
  t.is(await states("state like 'idle in transaction%'"), 0);
  t.false(await api.schema.hasTable('begun'));
});
