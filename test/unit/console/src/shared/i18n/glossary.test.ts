// One word for one thing: the glossary of console/README.md, held against every message of both languages.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { consoleRoot, messages } from '../../../../../helpers/console-sources.ts';
import { read } from '../../../../../helpers/documents.ts';

interface Entry {
  term: string;
  /** Any of them says it. */
  chinese: string[];
  /** Words that are never used for it, in either language. */
  never: string[];
}

const words = (cell: string) => (cell === '' ? [] : cell.split(', '));

/** Rows of the table below the heading "Glossary": term, Chinese, meaning, never. */
function glossary(): Entry[] {
  const readme = readFileSync(join(consoleRoot, 'README.md'), 'utf8');
  const [, section = ''] = readme.split('\n## Glossary\n');
  return section
    .split('\n## ')[0]!
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| Term'))
    .map((line) => {
      const [term = '', chinese = '', , never = ''] = line
        .slice(2, -2)
        .split(' | ')
        .map((cell) => cell.trim());
      return { term, chinese: words(chinese), never: words(never) };
    });
}

const entries = glossary();
const [en, zh] = [messages('en'), messages('zh-CN')];
/** What stands in place of a value is no word. */
const said = (message: string) => message.replaceAll(/\{[^}]*\}/g, '');
const word = (text: string) => new RegExp(`(?<![a-z])${text}(?:s|es)?(?![a-z])`, 'i');

test('the glossary has its rows', (t) => {
  t.true(entries.length > 10);
  for (const { term, chinese } of entries) t.true(chinese.length > 0, term);
});

test('the glossary of the documentation has the same words', (t) => {
  const rows = read('docs/concepts.md')
    .split('\n## Glossary\n')[1]!
    .matchAll(/^\| ([^|]+) \| [^|]+ \| ([^|]+) \|$/gm);
  const told = new Map([...rows].map(([, term = '', chinese = '']) => [term.toLowerCase(), chinese]));
  const both = entries.filter(({ term }) => told.has(term.toLowerCase()));
  t.true(both.length > 8);
  for (const { term, chinese } of both) t.true(chinese.includes(told.get(term.toLowerCase())!), term);
});

for (const { term, chinese, never } of entries) {
  test(`“${term}” is called ${chinese.join(' or ')} in Chinese`, (t) => {
    const other = [...en]
      .filter(([, message]) => word(term).test(said(message)))
      .filter(([key]) => !chinese.some((text) => said(zh.get(key) ?? '').includes(text)));
    t.deepEqual(
      other.map(([key, message]) => `${key}: ${message} – ${zh.get(key)}`),
      [],
    );
  });

  if (never.length === 0) continue;
  test(`“${term}” is never called ${never.join(' or ')}`, (t) => {
    const wrong = [...en, ...zh].filter(([, message]) => never.some((text) => word(text).test(said(message))));
    t.deepEqual(
      wrong.map(([key, message]) => `${key}: ${message}`),
      [],
    );
  });
}
