// What a browser fetches before a page can be used, compressed: sign-in 200 kB, the first list 300 kB, each further page
// 80 kB. Read from the build; `npm test` has built it.
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { buildWebConsole } from '../../../bin/lib/web-console.ts';
import { consoleRoot, LANGUAGES, messageFolders, sourceFiles } from '../../helpers/console-sources.ts';

interface Chunk {
  file: string;
  imports?: string[];
  css?: string[];
}

const dist = join(consoleRoot, 'dist');
let manifest: Record<string, Chunk>;

test.before(async () => {
  await buildWebConsole();
  manifest = JSON.parse(readFileSync(join(dist, '.vite', 'manifest.json'), 'utf8')) as Record<string, Chunk>;
});

function sizeOf(file: string): number {
  for (const name of [`${file}.gz`, file]) {
    const found = statSync(join(dist, name), { throwIfNoEntry: false });
    if (found) return found.size;
  }
  throw new Error(`${file} is not in the build`);
}

/** Files of these modules and of all they import at once. */
function filesOf(modules: readonly string[]): Set<string> {
  const files = new Set<string>();
  const seen = new Set<string>();
  const visit = (name: string) => {
    if (seen.has(name)) return;
    seen.add(name);
    const chunk = manifest[name];
    if (!chunk) throw new Error(`${name} is not in the build`);
    files.add(chunk.file);
    for (const style of chunk.css ?? []) files.add(style);
    for (const next of chunk.imports ?? []) visit(next);
  };
  for (const name of modules) visit(name);
  return files;
}

const total = (files: Iterable<string>) => [...files].reduce((sum, file) => sum + sizeOf(file), 0);

/** The larger language's messages of the folders. */
function messageBytes(folders: readonly string[]): number {
  const known = messageFolders();
  const of = (language: string) =>
    filesOf(
      folders
        .filter((name) => known.has(name))
        .map((name) => `${known.get(name)!.slice(consoleRoot.length + 1)}/${language}.json`),
    );
  return Math.max(...LANGUAGES.map((language) => total(of(language))));
}

const START = ['index.html'];
const FRAME = ['src/app/frame/AppFrame.vue'];
const LIST = 'src/features/sites/SitesPage.vue';
const KB = 1000;

test('sign-in takes at most 200 kB', (t) => {
  const files = filesOf([...START, 'src/features/sign-in/SignInPage.vue']);
  const bytes = total(files) + messageBytes(['app', 'shared', 'sign-in']) + sizeOf('index.html');
  t.log(`${Math.round(bytes / KB)} kB`);
  t.true(bytes <= 200 * KB, `${bytes} bytes`);
});

test('the first list takes at most 300 kB', (t) => {
  const files = filesOf([...START, ...FRAME, LIST]);
  const bytes = total(files) + messageBytes(['app', 'shared', 'sites', 'network']) + sizeOf('index.html');
  t.log(`${Math.round(bytes / KB)} kB`);
  t.true(bytes <= 300 * KB, `${bytes} bytes`);
});

test('each further page takes at most 80 kB more', (t) => {
  const there = filesOf([...START, ...FRAME, LIST]);
  const pages = sourceFiles()
    .filter(({ path }) => path.endsWith('/feature.ts'))
    .flatMap(({ path, text }) =>
      [...text.matchAll(/import\('\.\/([A-Za-z]+\.vue)'\)/g)].map((match) => path.replace('feature.ts', match[1]!)),
    );
  t.true(pages.length > 5);
  for (const page of pages) {
    const more = [...filesOf([page])].filter((file) => !there.has(file));
    const bytes = total(more) + messageBytes([page.split('/')[2]!, 'contract']);
    t.true(bytes <= 80 * KB, `${page}: ${bytes} bytes`);
  }
});
