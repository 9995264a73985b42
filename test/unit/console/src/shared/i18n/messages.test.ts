// Both languages say the same things, every key is used and every used key is there.
import test from 'ava';
import { LANGUAGES, messageFolders, messages, sourceFiles } from '../../../../../helpers/console-sources.ts';

const [en, zh] = LANGUAGES.map((language) => messages(language)) as [Map<string, string>, Map<string, string>];
const folders = [...messageFolders().keys()].join('|');
const text = sourceFiles()
  .map((file) => file.text.replaceAll(/^\s*(?:\/\/|\/\*\*|\*).*$/gm, ''))
  .join('\n');

/** Keys written out in quotes, or as the sentence of a TimedText. */
const literals = new Set(
  [...text.matchAll(new RegExp(`(?:['\`]| keypath=")((?:${folders})\\.[A-Za-z0-9_.]+)['\`"]`, 'g'))].map(
    (match) => match[1]!,
  ),
);
/** Beginnings of keys whose end is a value: t(`bans.reason.${ban.reason}`). */
const beginnings = [
  ...new Set(
    [...text.matchAll(new RegExp(`\`((?:${folders})\\.[A-Za-z0-9_.]*)\\$\\{`, 'g'))].map((match) => match[1]!),
  ),
];

/** “A, B and 3 more” counts the rest, 等 5 个 the whole: what English writes as {count} may be {whole} in Chinese. */
const placeholders = (message: string) =>
  [...new Set(message.replaceAll('{whole}', '{count}').match(/\{[a-zA-Z]+\}/g) ?? [])].sort();

test('both languages have the same keys', (t) => {
  t.deepEqual(
    [...en.keys()].filter((key) => !zh.has(key)),
    [],
    'missing in zh-CN',
  );
  t.deepEqual(
    [...zh.keys()].filter((key) => !en.has(key)),
    [],
    'missing in en',
  );
});

test('both languages use the same placeholders and forms', (t) => {
  const forms = (message: string) => message.split('|').length;
  const differ = [...en].filter(([key, message]) => {
    const other = zh.get(key) ?? '';
    return placeholders(message).join() !== placeholders(other).join() || forms(message) !== forms(other);
  });
  t.deepEqual(
    differ.map(([key]) => key),
    [],
  );
});

test('a key that a page names is there', (t) => {
  t.deepEqual(
    [...literals].filter((key) => !en.has(key) && !/\.(ts|vue|json)$/.test(key)),
    [],
  );
  t.deepEqual(
    beginnings.filter((beginning) => ![...en.keys()].some((key) => key.startsWith(beginning))),
    [],
    'no message begins like this',
  );
});

test('a feature loads the messages of all that its files name and of the public files they import', (t) => {
  const features = sourceFiles().flatMap(({ path, text: source }) => {
    const [, feature, file] = /^src\/features\/([^/]+)\/(.+)$/.exec(path) ?? [];
    return feature && file ? [{ feature, file, source }] : [];
  });
  const uses = new Map(
    features
      .filter(({ file }) => file === 'feature.ts')
      .map(({ feature, source }) => [feature, /^ {2}uses: \[(.*)\],$/m.exec(source)?.[1]?.match(/[a-z-]+/g) ?? []]),
  );
  const named = new RegExp(`(?:\\bt\\(\\s*['\`]| keypath=")(${folders})\\.|@/features/([a-z-]+)/public/`, 'g');
  const missing = features.flatMap(({ feature, source }) =>
    [...source.matchAll(named)]
      .map(([, key, imported]) => (key ?? imported)!)
      .filter((folder) => ![feature, 'app', 'shared', ...(uses.get(feature) ?? [])].includes(folder))
      .map((folder) => `${feature} uses ${folder}`),
  );
  t.deepEqual([...new Set(missing)], []);
});

test('a message is named by a page', (t) => {
  const used = (key: string) => literals.has(key) || beginnings.some((beginning) => key.startsWith(beginning));
  // Words of the contract are there for all of the contract (contract-words.test.ts), shown or not.
  const isContract = (key: string) => key.startsWith('contract.');
  t.deepEqual(
    [...en.keys()].filter((key) => !used(key) && !isContract(key)),
    [],
  );
});

test('a message says nothing to the compiler that it does not mean', (t) => {
  for (const language of LANGUAGES)
    for (const [key, message] of messages(language)) {
      const plain = message.replaceAll(/\{'[^']*'\}/g, '').replaceAll(/\{[a-zA-Z]+\}/g, '');
      t.notRegex(plain, /[@{}]/, `${language} ${key}: write {'@'}`);
    }
});

test('nothing is shown that is not a message', (t) => {
  // Text between tags: words of one language only. Names of units and keys of a keyboard are the same everywhere.
  const allowed = /^(?:Ctrl|⌘|K|\W|\d)*$/;
  for (const { path, text: source } of sourceFiles().filter((file) => file.path.endsWith('.vue'))) {
    const template = /<template>([\s\S]*)<\/template>/.exec(source)?.[1] ?? '';
    const words = template
      .replaceAll(/<!--[\s\S]*?-->/g, '')
      .replaceAll(/\{\{[\s\S]*?\}\}/g, '')
      .replaceAll(/<(?:[^"'>]|"[^"]*"|'[^']*')*>/g, '\n');
    for (const word of words
      .split('\n')
      .map((line) => line.trim())
      .filter(Boolean))
      t.regex(word, allowed, `${path}: ${word}`);
  }
});
