// What documents for developers state about folders, benchmarks and scripts, held against the tree.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { root } from '../../bin/lib/root.ts';
import { DOCUMENTS, read } from '../helpers/documents.ts';

test('the map of folders names folders that exist, and every folder at the top', (t) => {
  const map = read('CONTRIBUTING.md').split('## Folders')[1]!.split('\n## ')[0]!;
  const named = [...map.matchAll(/^\| (.+?) \|/gm)].flatMap(([, cell]) =>
    [...cell!.matchAll(/`([^`]+)`/g)].map(([, path]) => path!.replace(/\/$/, '')),
  );
  for (const path of named) t.true(existsSync(join(root, path)), path);
  const folders = readdirSync(root, { withFileTypes: true }).filter(
    (entry) => entry.isDirectory() && !entry.name.startsWith('.'),
  );
  const ignored = new Set(['node_modules', 'data', 'dist']);
  const missing = folders
    .map(({ name }) => name)
    .filter((name) => !ignored.has(name) && !named.some((path) => path.split('/')[0] === name));
  t.deepEqual(missing, []);
});

test('every benchmark is listed', (t) => {
  const names = readdirSync(join(root, 'bench')).filter((name) => name.endsWith('.bench.ts'));
  const listed = [...read('docs/development/benchmarks.md').matchAll(/^\| `([^`]+)` \|/gm)].map(([, name]) => name);
  t.deepEqual(listed.sort(), names.map((name) => name.replace('.bench.ts', '')).sort());
});

test('every npm script that a document names exists', (t) => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
  for (const file of DOCUMENTS)
    for (const [, name] of read(file).matchAll(/npm run (?:-s )?([a-z:]+)\b(?! --workspace)/g))
      t.true(name! in scripts, `${file}: ${name}`);
});

test('every benchmark and program of bin/ that a document names exists', (t) => {
  for (const file of DOCUMENTS) {
    const text = read(file);
    for (const [, name] of text.matchAll(/npm run (?:-s )?bench -- ([a-z-]+)/g))
      t.true(name === 'attack' || existsSync(join(root, 'bench', `${name}.bench.ts`)), `${file}: bench ${name}`);
    for (const [path] of text.matchAll(/(?<![\w/.])bin\/[a-z-]+[.]m?[jt]s\b/g))
      t.true(existsSync(join(root, path)), `${file}: ${path}`);
  }
});
