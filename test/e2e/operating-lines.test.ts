// The lines of docs/bans.md, docs/monitoring.md, docs/ip-lists.md and docs/runbooks.md, run as they stand there against a console.
import test from 'ava';
import { startTestConsole } from '../helpers/console.ts';
import { documentBlocks, documentLines, runShell } from '../helpers/documents.ts';
import { temporaryFolder } from '../helpers/temporary-folder.ts';

test.serial('an address is banned, and a process says that it is ready and what it counts', async (t) => {
  const running = await startTestConsole();
  t.teardown(() => running.stop());
  t.deepEqual(documentBlocks('docs/bans.md'), ['ban']);
  // Another test runs `own-database`: it needs `npm start`.
  t.deepEqual(documentBlocks('docs/running.md'), ['own-database']);
  t.deepEqual(documentBlocks('docs/monitoring.md'), ['metrics']);
  const folder = temporaryFolder(t);
  const env = { CONSOLE: running.url, KEY: running.client.accessKey, METRICS: running.metricsUrl };
  const banned = await runShell(documentLines('docs/bans.md', 'ban'), env, folder);
  t.like(JSON.parse(banned.lines.join('')), { scope: 'platform', cidr: '203.0.113.7/32', reason: 'abuse' });
  const told = await runShell(documentLines('docs/monitoring.md', 'metrics'), env, folder);
  t.deepEqual(told.lines, ['true', 'svc_redis_up 1'], told.output);
});

test.serial('an IP list is created, changed and deleted', async (t) => {
  const running = await startTestConsole();
  t.teardown(() => running.stop());
  const blocks = ['allow', 'change', 'delete'];
  t.deepEqual(documentBlocks('docs/ip-lists.md'), blocks);
  const env = { CONSOLE: running.url, KEY: running.client.accessKey };
  const { lines, output } = await runShell(documentLines('docs/ip-lists.md', ...blocks), env, temporaryFolder(t));
  t.deepEqual(lines, ['198.51.100.0/28 2001:db8:1::/48', '1', '0', '{}'], output);
});

test.serial('the commands of the runbooks find, stop and roll back what they are for', async (t) => {
  const running = await startTestConsole();
  t.teardown(() => running.stop());
  const { client } = running;
  const { site } = await client.api<{ site: { id: string; clusterId: string } }>('POST', '/sites', {
    name: 'Shop',
    domains: ['shop.example'],
    origins: [{ address: 'origin.example' }],
  });
  const [shell = '', ...blocks] = documentBlocks('docs/runbooks.md');
  t.deepEqual(blocks, [
    ...['incidents', 'attack-ban', 'attack-on', 'attack-off'],
    ...['revisions', 'preview', 'rollback', 'nodes', 'certificates', 'https-check'],
  ]);
  const env = { CONSOLE: running.url, KEY: client.accessKey, SITE: site.id, CLUSTER: site.clusterId };
  const run = (name: string) => runShell(documentLines('docs/runbooks.md', shell, name), env, temporaryFolder(t));
  t.deepEqual((await run('incidents')).lines, ['']);
  t.deepEqual((await run('attack-ban')).lines, ['203.0.113.7/32']);
  t.deepEqual((await run('attack-on')).lines, ['true']);
  t.deepEqual((await run('attack-off')).lines, ['false']);
  const revisions = (await run('revisions')).lines;
  t.true(revisions.length >= 3, revisions.join('\n'));
  const both = await runShell(documentLines('docs/runbooks.md', shell, 'preview', 'rollback'), env, temporaryFolder(t));
  t.is(both.lines[0], 'Shop', both.output);
  t.is(Number(both.lines[1]), Number(revisions[0]!.split(' ')[0]) + 1, both.output);
  t.deepEqual((await run('nodes')).lines, ['']);
  t.deepEqual((await run('certificates')).lines, ['']);
  t.regex((await run('https-check')).lines.join(), /nodes_offline/);
});
