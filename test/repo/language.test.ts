// How the product speaks: one word for a concept, an actor in front, sentences that can be read once.
import test from 'ava';
import { DOCUMENTS, read } from '../helpers/documents.ts';
import {
  ALLOWED,
  type Area,
  EXPANDED,
  type LanguageRule,
  MAX_WORDS,
  NINETIETH_WORDS,
  RULES,
} from '../helpers/language-rules.ts';
import { ninetieth, sentencesOf } from '../helpers/sentences.ts';
import { contractTexts, documentTexts, localeTexts, type Spoken } from '../helpers/spoken-texts.ts';

const ENGLISH: readonly Area[] = ['documents', 'contract', 'en'];

const concerns = ({ areas = ENGLISH }: Pick<LanguageRule, 'areas'>, area: Area) => areas.includes(area);
const isAllowed = ({ file, text }: Spoken) => ALLOWED.some((one) => one.file === file && text.includes(one.text));

function wrong(spoken: readonly Spoken[]): string[] {
  return spoken.flatMap((one) =>
    RULES.filter((rule) => concerns(rule, one.area) && rule.never.test(one.plain) && !rule.unless?.test(one.plain))
      .filter(() => !isAllowed(one))
      .map(({ never, say }) => `${one.file}:${one.line}: “${one.text}” has “${never.exec(one.plain)![0]}”: say ${say}`),
  );
}

test('documents use the words of the product', (t) => {
  t.deepEqual(wrong(documentTexts(DOCUMENTS)), []);
});

test('the contract uses the words of the product', (t) => {
  t.deepEqual(wrong(contractTexts()), []);
});

test('both languages of the Web UI use the words of the product', (t) => {
  t.deepEqual(wrong(localeTexts()), []);
});

test('no sentence of a document is too long to be read once', (t) => {
  const long = DOCUMENTS.flatMap((file) =>
    sentencesOf(read(file))
      .filter(({ words }) => words > MAX_WORDS)
      .map(({ line, words, text }) => `${file}:${line}: ${words} words, ${MAX_WORDS} at most; split it: “${text}”`),
  );
  t.deepEqual(long, []);
});

test('nine of ten sentences of a document are short', (t) => {
  const pages = DOCUMENTS.map((file) => ({ file, sentences: sentencesOf(read(file)) }))
    .filter(({ sentences }) => ninetieth(sentences) > NINETIETH_WORDS)
    .map(({ file, sentences }) => {
      const longest = sentences.toSorted((a, b) => b.words - a.words).slice(0, 3);
      const these = longest.map(({ line, words }) => `line ${line} (${words} words)`).join(', ');
      return `${file}: p90 is ${ninetieth(sentences)} words, ${NINETIETH_WORDS} at most; split first ${these}`;
    });
  t.deepEqual(pages, []);
});

test('CC is expanded where a document first uses it', (t) => {
  const unexplained = DOCUMENTS.flatMap((file) => {
    const first = sentencesOf(read(file)).find(({ plain }) => EXPANDED.term.test(plain));
    const right = !first || first.plain.includes(EXPANDED.whole);
    return right ? [] : [`${file}:${first.line}: “${first.text}”: say “${EXPANDED.whole}” here`];
  });
  t.deepEqual(unexplained, []);
});

test('sentences are those of headings, paragraphs, items and cells, with their lines', (t) => {
  const page = [
    '# Ban an address',
    '',
    'Send `POST /bans. Now`. The console returns',
    'the [ban](bans.md).',
    '```sh',
    'curl This is no sentence.',
    '```',
    '- An item goes',
    '  over two lines. Another one',
    '',
    '| Field | Meaning |',
    '| --- | --- |',
    '| `cidr` | A range. Or an address |',
  ].join('\n');
  t.deepEqual(
    sentencesOf(page).map(({ line, text, words }) => `${line}/${words} ${text}`),
    [
      '1/3 Ban an address',
      '3/2 Send `POST /bans. Now`.',
      '3/5 The console returns the ban.',
      '8/6 An item goes over two lines.',
      '9/2 Another one',
      '11/1 Field',
      '11/1 Meaning',
      '13/1 `cidr`',
      '13/2 A range.',
      '13/3 Or an address',
    ],
  );
});
