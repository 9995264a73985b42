// Bulk redirects that are edited: what is wrong with one, how lists differ and come together, and files of them.
import test from 'ava';
import {
  canonicalSource,
  faultsOf,
  found,
  mergeRedirects,
  type Redirect,
  redirectsDiff,
  withTheirs,
} from '../../../../../../console/src/features/rules/redirects/redirect.ts';
import { readRedirectsCsv, redirectsCsv } from '../../../../../../console/src/features/rules/redirects/redirect-csv.ts';

const redirect = (source: string, more: Partial<Redirect> = {}): Redirect => ({
  source,
  target: '/new',
  statusCode: 301,
  preserveQuery: false,
  ...more,
});
const [a, b, c] = ['/a', '/b', '/c'].map((source) => redirect(source)) as [Redirect, Redirect, Redirect];
const none = new Set<string>();

test('a source is kept in one form', (t) => {
  t.is(canonicalSource(' /a/../b '), '/b');
  t.is(canonicalSource('example.com/%61'), 'example.com/a');
  t.is(canonicalSource('no'), null);
});

test('what is wrong with a redirect is named', (t) => {
  t.deepEqual(faultsOf(a, none), []);
  t.deepEqual(faultsOf(redirect('', { target: '' }), none), ['source', 'target']);
  t.deepEqual(faultsOf(redirect('/x/../a'), new Set(['/a'])), ['sameSource']);
  t.deepEqual(faultsOf(redirect('/a', { target: `/${'ä'.repeat(512)}` }), none), ['targetLong']);
  t.deepEqual(faultsOf(redirect('/a', { target: '//host' }), none), ['target']);
});

test('lists differ by source', (t) => {
  const changed = redirect('/b', { statusCode: 308 });
  t.deepEqual(redirectsDiff([a, b], [changed, c]), [
    { what: 'changed', before: b, redirect: changed },
    { what: 'added', redirect: c },
    { what: 'removed', redirect: a },
  ]);
});

test('edits come together by source; what both changed is a conflict until somebody chooses', (t) => {
  const mine = redirect('/a', { target: '/mine' });
  const theirs = redirect('/a', { target: '/theirs' });
  t.deepEqual(mergeRedirects([a, b], [mine, b], [a, c]), { redirects: [mine, c], conflicts: [] });
  const both = mergeRedirects([a], [mine], [theirs]);
  t.deepEqual(both, { redirects: [mine], conflicts: [{ source: '/a', mine, theirs }] });
  t.deepEqual(withTheirs(both.redirects, both.conflicts), [theirs]);
  const deleted = mergeRedirects([a], [], [theirs]);
  t.deepEqual(deleted, { redirects: [], conflicts: [{ source: '/a', mine: null, theirs }] });
  t.deepEqual(mergeRedirects([a], [], []).conflicts, []);
});

test('a search finds sources and targets whatever the case', (t) => {
  const list = [redirect('/Shop', { target: '/x' }), redirect('/y', { target: 'https://shop.example/' }), a];
  t.is(found(list, ' SHOP ').length, 2);
  t.is(found(list, '').length, 3);
});

test('a file that was written is read again as the same redirects', (t) => {
  const list = [a, redirect('example.com/q"x', { target: '/a,b;c', statusCode: 307, preserveQuery: true })];
  t.deepEqual(readRedirectsCsv(redirectsCsv(list)), { redirects: list, faults: [] });
});

test('files of other programs are read: a mark at the beginning, semicolons, tabs, no heading, blank lines', (t) => {
  const expected = [redirect('/a', { target: '/b', statusCode: 302 })];
  for (const text of ['\uFEFF/a;/b;302\r\n\r\n', '/a\t/b\t302', 'Source,Target,Status\n"/a","/b",302'])
    t.deepEqual(readRedirectsCsv(text), { redirects: expected, faults: [] }, JSON.stringify(text));
});

test('what is wrong in a file is told with its line, and the others are read', (t) => {
  const lines = ['/a,/new', '/b', '/c,/new,200', '/d,/new,301,maybe', 'x,y', '/a,/other', '/e,"/new'];
  const { redirects, faults } = readRedirectsCsv(lines.join('\n'));
  t.deepEqual(redirects, [a]);
  t.deepEqual(
    faults.map(({ line, fault }) => `${line} ${fault}`),
    ['2 columns', '3 status', '4 preserveQuery', '5 source', '5 target', '6 sameSource', '7 quote'],
  );
  t.deepEqual(readRedirectsCsv(''), { redirects: [], faults: [] });
});

test('line ends in quotes count as lines', (t) => {
  t.deepEqual(
    readRedirectsCsv('"/a\n",/x\nwrong,/y').faults.map(({ line }) => line),
    [3],
  );
});
