// A console behind PgBouncer in transaction mode: each transaction may be on another connection than the one before.
import test from 'ava';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { connectAs, startTestFleet } from '../helpers/fleet.ts';
import { type Pooler, startPooler } from '../helpers/pgbouncer.ts';
import { Api } from '../helpers/resources.ts';
import { createTestDatabase, type TestDatabase } from '../helpers/servers.ts';

let database: TestDatabase;
let pooler: Pooler;
let console: TestConsole;

test.before(async () => {
  database = await createTestDatabase();
  pooler = await startPooler(database.url, 3);
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

test('behind PgBouncer in transaction mode changes and bans reach nodes, and all pages are read', async (t) => {
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
