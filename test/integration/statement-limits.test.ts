// How long one statement of a request may take.
import test from 'ava';
import { errorCodeOf } from '../../contract/errors.ts';
import { REQUEST_MS } from '../../moleculer.config.ts';
import { change, createPipeline, type Pipeline } from '../helpers/pipeline.ts';

let pipeline: Pipeline;

test.before(async () => {
  pipeline = await createPipeline();
});
test.after.always(() => pipeline?.close());

test('a statement of a request ends before the request does', async (t) => {
  const { api, bans } = pipeline.runtime.pools;
  for (const pool of [api, bans]) {
    const { rows } = await pool.raw("select setting::int as ms from pg_settings where name = 'statement_timeout'");
    t.true(rows[0].ms > 0 && rows[0].ms < REQUEST_MS, `${rows[0].ms} ms`);
  }
});

test('a statement that takes longer answers that the service is unavailable', async (t) => {
  const error = await t.throwsAsync(
    change(pipeline.runtime, (tx) => tx.sql.raw('set local statement_timeout = 1; select pg_sleep(60)')),
  );
  t.is(errorCodeOf(error), 'SERVICE_UNAVAILABLE');
});
