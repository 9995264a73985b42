// The lines of docs/protection.md, run as they stand there against a console.
import test from 'ava';
import { startTestConsole } from '../helpers/console.ts';
import { documentBlocks, documentLines, runShell } from '../helpers/documents.ts';
import { temporaryFolder } from '../helpers/temporary-folder.ts';

const DOCUMENT = 'docs/protection.md';

test('the lines switch protection on and off and show what happens', async (t) => {
  const running = await startTestConsole();
  t.teardown(() => running.stop());
  const { client } = running;
  const { site } = await client.api<{ site: { id: string } }>('POST', '/sites', {
    domains: ['protected.example'],
    origins: [{ address: 'origin.example' }],
  });
  const env = { CONSOLE: running.url, KEY: client.accessKey, SITE: site.id };
  const blocks = ['site', 'platform', 'cc', 'watch'];
  t.deepEqual(documentBlocks(DOCUMENT), blocks);
  const shown = await runShell(documentLines(DOCUMENT, ...blocks), env, temporaryFolder(t));
  const platform = ['pow', 'true', 'false'];
  const cc = ['1000', '800', '800', '300'];
  t.deepEqual(shown.lines, ['true', ...platform, ...cc, '0', '0', '0'], shown.output);
});
