// What the editor of expressions offers at a place, and what becomes of the text when it is taken.
import test from 'ava';
import { complete, type Language, putIn } from '../../../../../../console/src/features/rules/expression/completion.ts';
import { segmentsOf } from '../../../../../../console/src/features/rules/expression/segments.ts';
import { checkCondition } from '../../../../../../contract/expression/expression.ts';
import rows from '../../../../../vectors/expressions.json' with { type: 'json' };

const condition: Language = { kind: 'condition', phase: 'waf-custom', lists: ['office', 'partners'] };
const value: Language = { ...condition, kind: 'value', phase: 'redirect' };
const response: Language = { ...condition, phase: 'response-transform' };

/** `|` is where the cursor stands. */
function at(marked: string, language = condition) {
  const cursor = marked.indexOf('|');
  return complete(marked.replace('|', ''), cursor, language);
}
const texts = (marked: string, language = condition) => (at(marked, language)?.options ?? []).map(({ text }) => text);

test('at the beginning there are fields, functions and words', (t) => {
  const offered = texts('|');
  for (const each of ['http.host', 'lower', 'not', 'true']) t.true(offered.includes(each), each);
  t.false(offered.includes('http.response.code'), 'a request has no response');
  t.false(offered.includes('regex_replace'), 'which is for values');
  t.true(texts('|', response).includes('http.response.code'));
});

test('what begins with the typed letters comes first', (t) => {
  t.is(texts('ht|')[0], 'http.host');
  t.is(texts('geo|')[0], 'ip.geoip.country');
  t.deepEqual(texts('http.hos|'), ['http.host']);
});

test('after a field there are the operators of its type', (t) => {
  t.true(texts('http.host |').includes('strict wildcard'));
  t.false(texts('http.host |').includes('lt'));
  t.deepEqual(texts('ssl |'), ['eq', 'ne', 'in']);
  t.deepEqual(texts('len(http.host) g|'), ['gt', 'ge']);
});

test('lists are offered for addresses by their names, and true and false for what is one of them', (t) => {
  t.deepEqual(texts('ip.src in |'), ['$office', '$partners']);
  t.deepEqual(texts('ip.src in $p|'), ['$partners']);
  t.deepEqual(texts('ssl eq |'), ['true', 'false']);
  t.deepEqual(texts('http.host eq |'), []);
});

test('after a condition it goes on with and and or', (t) => {
  t.deepEqual(texts('http.host eq "a" |'), ['and', 'or']);
  t.true(texts('(http.host eq "a" |').includes('and'));
});

test('nothing is offered inside of a string', (t) => t.is(at('http.host eq "ht|'), null));

test('arguments and values are of the type that is wanted', (t) => {
  t.false(texts('lower(|').includes('ip.src'));
  t.true(texts('lower(|').includes('http.host'));
  t.true(texts('to_string(|', value).includes('ip.src'));
  t.false(texts('substring(http.host, |', value).includes('http.host'));
  const offered = texts('|', value);
  t.true(offered.includes('regex_replace') && offered.includes('http.host'));
  t.false(offered.includes('ssl') || offered.includes('not') || offered.includes('len'));
});

test('where something before is wrong, any operand may be meant', (t) =>
  t.true(texts('nosuch eq 1 and ht|').includes('http.host')));

test('a word that is whole is not offered again', (t) => t.is(at('http.host|'), null));

test('an option takes the place of the word, and the cursor stands where one goes on', (t) => {
  const taken = (marked: string, text: string, language = condition) => {
    const found = at(marked, language)!;
    const edit = putIn(marked.replace('|', ''), found, found.options.find((option) => option.text === text)!);
    return `${edit.text.slice(0, edit.cursor)}|${edit.text.slice(edit.cursor)}`;
  };
  t.is(taken('ho| eq "a"', 'http.host'), 'http.host| eq "a"');
  t.is(taken('ho|', 'http.host'), 'http.host |');
  t.is(taken('low|', 'lower'), 'lower(|)');
  t.is(taken('low|(http.host) eq "a"', 'lower'), 'lower(|http.host) eq "a"');
  t.is(taken('hea|', 'http.request.headers'), 'http.request.headers["|"]');
  t.is(taken('ssl eq t|', 'true'), 'ssl eq true|');
  t.is(taken('(ip.src in |)', '$office'), '(ip.src in $office|)');
});

test('the coloured pieces of a source are the source, whatever it is', (t) => {
  for (const { source } of rows.rows) {
    const result = checkCondition(source, { phase: 'waf-custom' });
    for (const wrong of [-1, result.valid ? 0 : result.error.position])
      t.is(
        segmentsOf(source, wrong)
          .map(({ text }) => text)
          .join(''),
        source,
      );
  }
});

test('what is wrong is underlined where it stands', (t) => {
  const wrong = (source: string) => {
    const result = checkCondition(source, { phase: 'waf-custom' });
    const segments = segmentsOf(source, result.valid ? -1 : result.error.position);
    return segments.filter((segment) => segment.wrong).map(({ text }) => text);
  };
  t.deepEqual(wrong('http.host gt 5'), ['gt']);
  t.deepEqual(wrong('http.hots eq "a"'), ['http.hots']);
  t.deepEqual(wrong('http.host matches "a(b"'), ['(']);
  t.deepEqual(wrong('http.host eq "a'), ['"']);
  t.deepEqual(wrong('http.host eq "a"'), []);
});
