// A console behind PgBouncer in transaction mode: each transaction may be on another connection than the one before.
import { EventEmitter } from 'node:events';
import test from 'ava';
import pg from 'pg';
import { forClient, withinRequest } from '../../runtime/request-scope.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { connectAs, startTestFleet } from '../helpers/fleet.ts';
import { type Pooler, startPooler } from '../helpers/pgbouncer.ts';
import { Api } from '../helpers/resources.ts';
import { createTestDatabase, type TestDatabase } from '../helpers/servers.ts';

let database: TestDatabase;
let pooler: Pooler;
let console: TestConsole;

test.before(async () => {
  database = await createTestDatabase();
  pooler = await startPooler(database.url, 6);
  console = await startTestConsole({
    database: { url: pooler.url },
    env: { DATABASE_DIRECT_URL: database.url },
  });
});
test.after.always(async () => {
  await console?.stop();
  await pooler?.stop();
  await database?.drop();
});

test.serial('behind PgBouncer in transaction mode changes and bans reach nodes, and all pages are read', async (t) => {
  const api = new Api(console);
  const clusterId = await api.cluster('pooled');
  const fleet = await startTestFleet(console, clusterId, 3);
  t.teardown(() => fleet.stop());
  // More at a time than the pooler has connections, each with statements that the others have, too.
  const sites = await Promise.all(
    Array.from({ length: 12 }, (_, index) => api.site(clusterId, `pooled-${index}.example`)),
  );
  const bans = await Promise.all(
    Array.from({ length: 12 }, (_, index) =>
      api.ok('POST', '/bans', { scope: 'platform', cidr: `20.0.0.${index}`, reason: 'other', durationSeconds: 600 }),
    ),
  );
  const { latestRevision } = await api.ok('GET', `/clusters/${clusterId}`);
  await fleet.waitForRevision(latestRevision);
  await fleet.waitForBans(String(Math.max(...bans.map(({ seq }) => Number(seq)))));
  // Statements of the node channel are named where there is no pooler.
  const node = connectAs(console, fleet.identities[0]!);
  t.teardown(() => node.destroy());
  const pulled = await Promise.all(Array.from({ length: 12 }, () => node.call('getBans', {})));
  for (const { upserts } of pulled) t.is(upserts.length, bans.length);
  const id = sites[0]!.id;
  for (const path of ['/overview', '/nodes', '/sites', '/changes', '/bans', '/audit-logs', `/sites/${id}/waf`])
    t.is((await api.call('GET', path)).status, 200, path);
});

/** Processes of the database that wait for the audit log. */
async function waiting(holder: pg.Client): Promise<number[]> {
  const { rows } = await holder.query<{ pid: number }>(
    `select pid from pg_locks where relation = 'audit_entry'::regclass and not granted`,
  );
  return rows.map(({ pid }) => pid);
}

test.serial('behind PgBouncer the statement of a request ends with its client, or with its time', async (t) => {
  const holder = new pg.Client({ connectionString: database.url });
  await holder.connect();
  t.teardown(() => holder.end());
  await holder.query('begin; lock table audit_entry in access exclusive mode');
  /** Those that wait and are none of `known`, once there are some. */
  const begun = (known: readonly number[]) =>
    eventually(
      async () => {
        const pids = (await waiting(holder)).filter((pid) => !known.includes(pid));
        return pids.length > 0 && pids;
      },
      { what: 'a statement that waits' },
    );
  const ended = (pids: readonly number[]) =>
    eventually(async () => !(await waiting(holder)).some((pid) => pids.includes(pid)), { what: 'its end' });

  // The limit of the pooler would say something else.
  const response = new EventEmitter();
  const { api: pool } = console.running.runtime.pools;
  const call = forClient(response, () => withinRequest(600_000, true, async () => pool.raw('select from audit_entry')));
  const pids = await begun([]);
  response.emit('close');
  await t.throwsAsync(call, { code: '57014' });
  await ended(pids);

  const headers = { 'x-api-key': console.client.accessKey };
  const get = (signal: AbortSignal | null = null) => fetch(`${console.url}/api/v1/audit-logs`, { headers, signal });
  // The time of the first is over before that of the second: where the second ends first, it ended with its client.
  const endsWithClient = async () => {
    let over = false;
    const first = get().finally(() => {
      over = true;
    });
    const ofFirst = await begun([]);
    const leaving = new AbortController();
    const second = get(leaving.signal);
    const ofSecond = await begun(ofFirst);
    leaving.abort();
    t.true(
      await second.then(
        () => false,
        () => true,
      ),
    );
    await ended(ofSecond);
    const before = !over;
    t.is((await first).status, 503);
    await ended(ofFirst);
    return before;
  };
  // On a machine that stands still for that long, the first attempt shows nothing.
  t.true((await endsWithClient()) || (await endsWithClient()));
  await holder.query('rollback');
  t.is((await get()).status, 200);
});
