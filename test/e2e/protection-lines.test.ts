// The lines of docs/protection.md and docs/waf.md, run as they stand there against a console.
import test from 'ava';
import { packsOf } from '../../contract/waf-packs.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { documentBlocks, documentLines, runShell } from '../helpers/documents.ts';
import { temporaryFolder } from '../helpers/temporary-folder.ts';

let running: TestConsole;
let env: Record<string, string>;

test.before('a console with a site', async () => {
  running = await startTestConsole();
  const { client } = running;
  const { site } = await client.api<{ site: { id: string } }>('POST', '/sites', {
    domains: ['protected.example'],
    origins: [{ address: 'origin.example' }],
  });
  env = { CONSOLE: running.url, KEY: client.accessKey, SITE: site.id };
});
test.after.always('stop', () => running?.stop());

test.serial('the lines switch protection on and off and show what happens', async (t) => {
  const blocks = ['site', 'platform', 'cc', 'watch'];
  t.deepEqual(documentBlocks('docs/protection.md'), blocks);
  const shown = await runShell(documentLines('docs/protection.md', ...blocks), env, temporaryFolder(t));
  const platform = ['pow', 'true', 'false'];
  const cc = ['1000', '800', '800', '300'];
  t.deepEqual(shown.lines, ['true', ...platform, ...cc, '0', '0', '0'], shown.output);
});

test.serial('the lines take a site from detect over an exclusion to block', async (t) => {
  const blocks = ['detect', 'read', 'values', 'share', 'exclude', 'packs', 'block'];
  t.deepEqual(documentBlocks('docs/waf.md'), blocks);
  const shown = await runShell(documentLines('docs/waf.md', ...blocks), env, temporaryFolder(t));
  const exclude = ['0', '/editor', '0', '0'];
  const reason = packsOf(['wordpress'])[0]!.exclusions[0]!.reason.en;
  const packs = ['1', reason, '0'];
  const read = ['detect', '0', '0', '0', '0', 'true', '0'];
  t.deepEqual(shown.lines, [...read, ...exclude, ...packs, 'block', 'off'], shown.output);
});
