// The README is checked where it states facts that code knows better.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { root } from '../../bin/lib/root.ts';
import { VARIABLES } from '../../runtime/env-variables.ts';

const readme = readFileSync(join(root, 'README.md'), 'utf8');

function defaultOf(variable: (typeof VARIABLES)[number]): string {
  if (variable.required) return 'required';
  if (variable.default === null) return '';
  return variable.default === '' ? 'empty' : `\`${variable.default}\``;
}

test('the table of variables is the one the console parses with', (t) => {
  const rows = VARIABLES.map(
    (variable) => `| \`${variable.name}\` | ${variable.meaning} | ${variable.accepts} | ${defaultOf(variable)} |`,
  );
  const table = /<!-- table: variables -->\n((?:\|.*\n)+)/.exec(readme)?.[1]?.trimEnd().split('\n').slice(2);
  t.deepEqual(table, rows);
});

test('every folder it names exists, and every folder of the repository is named', (t) => {
  const map = readme.split('## Folders')[1]!.split('\n## ')[0]!;
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
  const listed = [...readme.split('## Benchmarks')[1]!.matchAll(/^\| `([^`]+)` \|/gm)].map(([, name]) => name);
  t.deepEqual(listed.sort(), names.map((name) => name.replace('.bench.ts', '')).sort());
});

test('every npm script it names exists', (t) => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };
  const docs = readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md'));
  for (const text of [readme, ...docs.map((name) => readFileSync(join(root, 'docs', name), 'utf8'))]) {
    for (const [, name] of text.matchAll(/npm run (?:-s )?([a-z:]+)/g)) t.true(name! in scripts, name);
  }
});
