// The restore drill with everything real: a console is lost, its backup becomes a new one, and a node with its edge attaches by
// itself and ends with what the backup says.
import { join } from 'node:path';
import test from 'ava';
import { freePort } from '../../bench/lib/servers.ts';
import { drill } from '../../bin/lib/backup/drill.ts';
import { TEST_OPERATOR } from '../../bin/lib/console-client.ts';
import { parseEnv } from '../../runtime/env.ts';
import { createSealer } from '../../runtime/sealer.ts';
import { backupsIn, emptyDatabase, query, runCommand } from '../helpers/backup-commands.ts';
import { startTestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { startLocalEdge, startLocalOrigin } from '../helpers/local-edge.ts';
import { Api, type Body } from '../helpers/resources.ts';
import { createTestDatabase } from '../helpers/servers.ts';
import { temporaryFolder } from '../helpers/temporary-folder.ts';

const { email, password } = TEST_OPERATOR;

test('a console restored from its backup has its nodes back, with what the backup says', async (t) => {
  const port = await freePort();
  const env = { NODE_API_PORT: String(port), SVC_NODE_API_URL: `https://localhost:${port}` };
  const first = await createTestDatabase();
  t.teardown(first.drop);
  const lost = await startTestConsole({ env, database: { url: first.url } });
  t.teardown(() => lost.stop());
  const api = new Api(lost);
  const origin = await startLocalOrigin(t, api, (_, response) => response.end('the site'));
  const clusterId = await api.cluster('drill');
  const origins = [{ address: origin.address, port: origin.port }];
  const kept = await api.site(clusterId, 'kept.example', { origins });
  const { ask, edge } = await startLocalEdge(t, lost, clusterId);
  const bans = (scope: Body) => ({ scope: 'platform', reason: 'abuse', durationSeconds: 3600, ...scope });
  const keptBan = await api.ok('POST', '/bans', bans({ cidr: '192.0.2.7' }));
  const serves = async (host: string, status: number) => (await ask(host)).status === status;
  await eventually(() => serves('kept.example', 200), { what: 'the site of the backup' });

  const folder = temporaryFolder(t);
  const backup = await runCommand('backup', { args: ['--to', folder], env: { DATABASE_URL: first.url } });
  t.is(backup.code, 0, backup.stderr);
  const masterKey = lost.env.SVC_MASTER_KEY!;
  t.false(backup.stderr.includes(masterKey));

  // What the backup does not know.
  const gone = await api.site(clusterId, 'gone.example', { origins });
  const lostBan = await api.ok('POST', '/bans', bans({ cidr: '192.0.2.8', reason: 'scanner' }));
  const lostOfSite = await api.ok('POST', '/bans', bans({ cidr: '192.0.2.10', scope: 'site', siteId: kept.id }));
  await api.ok('DELETE', `/bans/${keptBan.id}`);
  await api.ok('PUT', `/sites/${kept.id}/enabled`, { enabled: false });
  await eventually(async () => (await serves('gone.example', 200)) && !(await serves('kept.example', 200)), {
    what: 'what came after the backup',
  });
  await eventually(
    async () => {
      const { banStatus } = await api.ok('GET', `/nodes/${edge.nodeId}`);
      return BigInt(banStatus?.appliedSequence ?? 0) >= BigInt(lostOfSite.seq);
    },
    { what: 'the bans that came after the backup, on the node' },
  );
  const [before] = await query<{ revision: string; ban: string }>(
    first.url,
    `select revision::text, (select last_value::text from ban_seq) as ban from cluster_head where cluster_id = '${clusterId}'`,
  );
  t.true((await query(first.url, 'select from session')).length > 0);
  await lost.stop();

  const restored = await emptyDatabase();
  t.teardown(restored.drop);
  const [file] = backupsIn(folder);
  const run = await runCommand('restore', {
    args: ['--from', file!],
    env: { DATABASE_URL: restored.url, SVC_MASTER_KEY: masterKey },
  });
  t.is(run.code, 0, run.stderr);
  t.regex(run.stderr, /All \d+ secrets open/);
  t.false(run.stderr.includes(masterKey));
  t.is((await query(restored.url, 'select from session')).length, 0);

  const running = await startTestConsole({ env, database: { url: restored.url }, masterKey });
  t.teardown(() => running.stop());
  t.is(running.setupToken, null);
  await running.client.signIn({ email, password });
  running.client.accessKey = lost.client.accessKey;
  const again = new Api(running);
  await eventually(async () => (await serves('kept.example', 200)) && !(await serves('gone.example', 200)), {
    timeoutMs: 120_000,
    what: 'the node with what the backup says',
  });
  await eventually(
    async () => {
      const node = await again.ok('GET', `/nodes/${edge.nodeId}`);
      return (
        node.online &&
        node.banStatus?.enforcing !== false &&
        BigInt(node.banStatus?.appliedSequence ?? 0) > BigInt(before!.ban)
      );
    },
    { what: 'the node with the bans of the backup' },
  );
  const active = await again.ok('GET', '/bans');
  t.deepEqual(
    active.items.map(({ cidr }: Body) => cidr),
    ['192.0.2.7/32'],
  );
  // The node names what it held and the backup lacks; the ban that was lifted after the backup is active again.
  const lostBans = await eventually(
    async () => {
      const answer = await again.ok('GET', '/bans/lost');
      return answer.total === 2 && answer;
    },
    { what: 'the bans that the restore lost' },
  );
  t.deepEqual(
    lostBans.items.map(({ id, cidr, siteName, reason, nodes }: Body) => ({ id, cidr, siteName, reason, nodes })),
    [
      { id: lostOfSite.id, cidr: '192.0.2.10/32', siteName: 'kept.example', reason: 'abuse', nodes: 1 },
      { id: lostBan.id, cidr: '192.0.2.8/32', siteName: null, reason: 'scanner', nodes: 1 },
    ],
  );
  t.is(lostBans.items[1].expiresAt.slice(0, 16), lostBan.expiresAt.slice(0, 16));
  const { items: told } = await again.ok('GET', '/audit-logs?action=system.bans_lost');
  t.like(told, { length: 1, 0: { actorType: 'system', metadata: { bans: 2 } } });
  // No number that a node or an API client has seen is given again.
  await again.ok('PUT', `/sites/${kept.id}/enabled`, { enabled: false });
  await again.ok('POST', '/bans', bans({ cidr: '192.0.2.9' }));
  const [after] = await query<{ revision: string; ban: string }>(
    restored.url,
    `select revision::text, (select last_value::text from ban_seq) as ban from cluster_head where cluster_id = '${clusterId}'`,
  );
  t.true(BigInt(after!.revision) > BigInt(before!.revision));
  t.true(BigInt(after!.ban) > BigInt(before!.ban));
  t.is((await again.call('GET', `/sites/${gone.id}`)).status, 404);

  const { masterKey: keyBytes } = parseEnv(running.env);
  const done = await drill({ databaseUrl: restored.url, version: 'test', sealer: createSealer(keyBytes) });
  t.deepEqual(done.restored.secrets?.closed, []);
  t.true(done.tables > 50);
  t.deepEqual(await query(restored.url, `select from pg_database where datname like 'backup_drill_%'`), []);
  t.is((await runCommand('backup', { args: ['show', '--from', join(folder, 'none')] })).code, 1);
});
