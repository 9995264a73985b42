// COPY of rows, and counts of nodes that are stored with it beside everything else.
import { create } from '@bufbuild/protobuf';
import test from 'ava';
import pg from 'pg';
import { copyIn } from '../../models/db/copy-in.ts';
import { ReportStatsRequestSchema } from '../../proto/gen/svc/node/v1/node_pb.js';
import { UnnamedClient } from '../../runtime/unnamed-client.ts';
import { StatsIngest } from '../../services/node-channel/stats-ingest.ts';
import { eventually } from '../helpers/eventually.ts';
import { addCluster, createPipeline, type Pipeline } from '../helpers/pipeline.ts';

let pipeline: Pipeline;

test.before(async () => {
  pipeline = await createPipeline();
});
test.after.always(() => pipeline?.close());

const ROWS = [
  ['plain', 1, true, '{"a":1}', '{1,2}'],
  ['tab\tline\nreturn\rback\\slash \\N \\. "quoted"', -1.5, false, '{"a\\\\b":"c\\nd"}', '{}'],
  ['', 2 ** 52, true, null, null],
  ['网站 🎉', 0, false, '[]', '{NULL}'],
];

for (const Client of [pg.Client, UnnamedClient]) {
  test(`rows arrive as they are, all or none: ${Client.name}`, async (t) => {
    const pool = new pg.Pool({ connectionString: pipeline.runtime.env.databaseUrl, max: 1, Client });
    const client = await pool.connect();
    try {
      await client.query('create temp table copied (name text, number float8, yes boolean, data jsonb, list bigint[])');
      const columns = ['name', 'number', 'yes', 'data', 'list'];
      await copyIn(client, 'copied', columns, ROWS);
      const { rows } = await client.query('select name, number, yes, data::text, list::text from copied');
      t.deepEqual(
        rows.map((row) => Object.values(row)),
        ROWS.map(([name, number, yes, data, list]) => [name, number, yes, data && asStored(String(data)), list]),
      );
      await t.throwsAsync(
        copyIn(client, 'copied', columns, [
          ['good', 1, true, null, null],
          ['bad', 1, true, '{', null],
        ]),
        {
          code: '22P02',
        },
      );
      t.is((await client.query('select from copied')).rowCount, ROWS.length);
    } finally {
      client.release();
      await pool.end();
    }
  });
}

/** PostgreSQL writes JSON with spaces. */
function asStored(json: string): string {
  return json.replaceAll('":', '": ');
}

test('while counts of nodes wait for the database, all connections of the node channel are free', async (t) => {
  const { runtime } = pipeline;
  const clusterId = await addCluster(runtime);
  const holder = new pg.Client({ connectionString: runtime.env.databaseUrl });
  await holder.connect();
  t.teardown(() => holder.end());
  await holder.query('begin; lock table usage_cursor in access exclusive mode');
  const ingest = new StatsIngest(runtime, 1);
  const minute = BigInt(Math.floor(Date.now() / 60_000 - 1) * 60);
  const request = create(ReportStatsRequestSchema, {
    sequence: 1n,
    firstHeld: 1n,
    minutes: [{ siteId: '', minute, requests: 7n }],
  });
  const stored = ingest.report({ nodeId: 'node', clusterId }, request);
  const waits = `select from pg_stat_activity where application_name = 'svc-counts' and wait_event_type = 'Lock'
    and datname = current_database()`;
  await eventually(async () => (await runtime.pools.api.raw<{ rowCount: number }>(waits)).rowCount === 1);
  for (const pool of [runtime.pools.channel, runtime.pools.ingest]) t.is(pool.totalCount - pool.idleCount, 0);
  await holder.query('rollback');
  t.is(await stored, 1n);
  await ingest.stop();
  const { rows } = await runtime.pools.api.raw('select site_id, requests from usage_minute where cluster_id = ?', [
    clusterId,
  ]);
  t.deepEqual(rows, [{ site_id: '', requests: '7' }]);
});
