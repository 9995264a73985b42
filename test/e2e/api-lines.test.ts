// The lines of docs/api.md, run as they stand there against a console.
import test from 'ava';
import { startTestConsole, TEST_OPERATOR } from '../helpers/console.ts';
import { documentBlocks, documentLines, runShell } from '../helpers/documents.ts';
import { temporaryFolder } from '../helpers/temporary-folder.ts';

const DOCUMENT = 'docs/api.md';

/** What each block shows, in the order of the document. */
const SHOWN: Readonly<Record<string, readonly (string | RegExp)[]>> = {
  keys: [TEST_OPERATOR.email, 'Europe', 'ACCESS_KEY_READ_ONLY'],
  'service-accounts': ['0', 'clusters:read', 'SERVICE_ACCOUNT_FORBIDDEN', 'false', '401'],
  // The deletion answers {} without a line end.
  'rate-limit': [/^\{\} +600 200$/, /^ *1 429$/, /^([1-9]|[1-5][0-9]|60)$/],
  idempotency: [/^HTTP\/1.1 201 /, /^HTTP\/1.1 201 /, /^idempotent-replayed: true\r?$/i, /^HTTP\/1.1 422 /],
  conventions: ['2', '/pageSize', 'UPDATED_AT_MISMATCH'],
  changes: ['site_created'],
  audit: ['Africa Europe', 'service_account.delete', 'true', '365'],
};

test('the lines show what the document says', async (t) => {
  const running = await startTestConsole();
  t.teardown(() => running.stop());
  const folder = temporaryFolder(t);
  const env = { CONSOLE: running.url, EMAIL: TEST_OPERATOR.email, PASSWORD: TEST_OPERATOR.password };
  const blocks = documentBlocks(DOCUMENT);
  t.deepEqual(blocks, Object.keys(SHOWN));
  const { lines, output } = await runShell(documentLines(DOCUMENT, ...blocks), env, folder);
  const expected = Object.values(SHOWN).flat();
  t.is(lines.length, expected.length, output);
  for (const [index, what] of expected.entries()) {
    if (typeof what === 'string') t.is(lines[index], what, output);
    else t.regex(lines[index]!, what, output);
  }
});
