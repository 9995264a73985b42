// The recipes of docs/cache-recipes.md: each is taken as it stands there, and the purge from CI runs.
import test from 'ava';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { documentBlocks, documentLines, read, runShell } from '../helpers/documents.ts';
import { Api, type Body } from '../helpers/resources.ts';
import { temporaryFolder } from '../helpers/temporary-folder.ts';

const FILE = 'docs/cache-recipes.md';
const [, ...parts] = read(FILE).split(/^## /m);
const recipes = parts.flatMap((part) => {
  const [, text] = /^```json\n([\s\S]*?)^```$/m.exec(part) ?? [];
  return text ? [{ title: part.split('\n', 1)[0]!, body: JSON.parse(text) as Body }] : [];
});

let running: TestConsole;
let api: Api;
let siteId: string;

test.before(async () => {
  running = await startTestConsole();
  api = new Api(running);
  siteId = (await api.site(await api.cluster('recipes'), 'recipes.example')).id;
});
test.after.always(() => running?.stop());

test.serial('every recipe is saved as it stands in the document', async (t) => {
  t.deepEqual(
    recipes.map(({ title }) => title),
    ['WordPress', 'Single-page application', 'API', 'Video'],
  );
  for (const { title, body } of recipes) {
    const { site } = await api.ok('PATCH', `/sites/${siteId}`, body);
    t.is(site.cacheRules.length, body.cacheRules.length, title);
    for (const [index, rule] of body.cacheRules.entries()) t.like(site.cacheRules[index], rule, title);
    if (body.cacheSettings) t.like(site.cacheSettings.cacheKey, body.cacheSettings.cacheKey, title);
  }
});

test.serial('the lines for CI purge by tag and wait for all nodes', async (t) => {
  t.deepEqual(documentBlocks(FILE), ['purge-from-ci']);
  const env = { CONSOLE: running.url, KEY: running.client.accessKey, SITE: siteId };
  const { lines, output } = await runShell(documentLines(FILE, 'purge-from-ci'), env, temporaryFolder(t));
  t.deepEqual(lines, ['succeeded'], output);
  const { items } = await api.ok('GET', `/cache-tasks?siteId=${siteId}`);
  t.like(items[0], { type: 'tag', targets: ['release'] });
});
