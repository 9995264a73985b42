// The lines of docs/bans.md and docs/running.md, run as they stand there against a console.
import test from 'ava';
import { startTestConsole } from '../helpers/console.ts';
import { documentBlocks, documentLines, runShell } from '../helpers/documents.ts';
import { temporaryFolder } from '../helpers/temporary-folder.ts';

test('an address is banned, and a process says that it is ready and what it counts', async (t) => {
  const running = await startTestConsole();
  t.teardown(() => running.stop());
  t.deepEqual(documentBlocks('docs/bans.md'), ['ban']);
  // Another test runs `own-database`: it needs `npm start`.
  t.deepEqual(documentBlocks('docs/running.md'), ['own-database', 'metrics']);
  const folder = temporaryFolder(t);
  const env = { CONSOLE: running.url, KEY: running.client.accessKey, METRICS: running.metricsUrl };
  const banned = await runShell(documentLines('docs/bans.md', 'ban'), env, folder);
  t.like(JSON.parse(banned.lines.join('')), { scope: 'platform', cidr: '203.0.113.7/32', reason: 'abuse' });
  const told = await runShell(documentLines('docs/running.md', 'metrics'), env, folder);
  t.deepEqual(told.lines, ['true', 'svc_redis_up 1'], told.output);
});
