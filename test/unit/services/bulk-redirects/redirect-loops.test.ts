// Loops among bulk redirects: by themselves, through others, through hosts, and what only looks like one.
import test from 'ava';
import { parseDomain } from '../../../../contract/scalars/domain.ts';
import { parseRedirectSource, redirectKey } from '../../../../contract/scalars/redirect-source.ts';
import { redirectLoops } from '../../../../services/bulk-redirects/redirect-loops.ts';
import { redirectWarnings } from '../../../../services/bulk-redirects/redirect-warnings.ts';

const DOMAINS = ['a.example', 'b.example', '*.wild.example', 'xn--mnchen-3ya.example'];
const site = { domains: DOMAINS.map((text) => parseDomain(text)!), ports: { http: [80, 8080], https: [443, 8443] } };

const rowsOf = (pairs: readonly (readonly [string, string])[]) =>
  pairs.map(([source, target]) => ({
    source: redirectKey(parseRedirectSource(source)!),
    target,
    statusCode: 301 as const,
    preserveQuery: false,
  }));

type Case = [what: string, redirects: [source: string, target: string][], loops: string[][]];
const CASES: Case[] = [
  ['a path to itself', [['/loop', '/loop']], [['/loop']]],
  ['with a query', [['/loop', '/loop?x=1']], [['/loop']]],
  ['with a fragment', [['/loop', '/loop#top']], [['/loop']]],
  ['in another spelling', [['/loop', '/x/../%6coop']], [['/loop']]],
  ['with a slash at the end: another path', [['/loop', '/loop/']], []],
  ['in another case: another path', [['/loop', '/Loop']], []],
  ['to nothing', [['/a', '/b']], []],
  [
    'a chain that ends',
    [
      ['/a', '/b'],
      ['/b', '/c'],
    ],
    [],
  ],
  [
    'through a second one',
    [
      ['/a', '/b'],
      ['/b', '/a'],
    ],
    [['/a', '/b']],
  ],
  [
    'through a third one',
    [
      ['/a', '/b'],
      ['/b', '/c'],
      ['/c', '/a'],
    ],
    [['/a', '/b', '/c']],
  ],
  [
    'a way into a loop is none itself',
    [
      ['/in', '/a'],
      ['/a', '/b'],
      ['/b', '/a'],
    ],
    [['/a', '/b']],
  ],
  [
    'two loops',
    [
      ['/a', '/a'],
      ['/b', '/b'],
    ],
    [['/a'], ['/b']],
  ],
  ['a URL of a host of the site', [['/a', 'https://a.example/a']], [['/a']]],
  ['a URL in upper case', [['/a', 'HTTPS://A.Example/a']], [['/a']]],
  ['a URL of an international host', [['/ü', 'https://münchen.example/%C3%BC']], [['/ü']]],
  ['a URL of a wildcard domain', [['/a', 'https://x.wild.example/a']], [['/a']]],
  ['a URL of another host', [['/a', 'https://other.example/a']], []],
  ['a URL with a port of the site', [['/a', 'https://a.example:8443/a']], [['/a']]],
  ['a URL with a port of another service', [['/a', 'https://a.example:9000/a']], []],
  ['a host with its own source', [['a.example/x', '/x']], [['a.example/x']]],
  ['a host with its own source, to another host', [['a.example/x', 'https://b.example/x']], []],
  [
    'back and forth between hosts',
    [
      ['a.example/x', 'https://b.example/x'],
      ['b.example/x', 'https://a.example/x'],
    ],
    [['a.example/x', 'b.example/x']],
  ],
  [
    'through a source of every host',
    [
      ['a.example/x', '/y'],
      ['/y', '/x'],
    ],
    [['a.example/x', '/y']],
  ],
  [
    'a source of one host wins over that of all',
    [
      ['/x', 'https://a.example/x'],
      ['a.example/x', '/done'],
    ],
    [],
  ],
  ['the root of a host', [['a.example/', '/']], [['a.example/']]],
  ['a percent sign', [['/100%', '/100%25']], [['/100%']]],
  ['an encoded question mark is part of the path', [['/a%3Fb', '/a?b']], []],
];

for (const [what, redirects, loops] of CASES) {
  test(`${loops.length > 0 ? 'a loop' : 'no loop'}: ${what}`, (t) => {
    const keys = loops.map((loop) => loop.map((source) => redirectKey(parseRedirectSource(source)!)));
    const sorted = (list: string[][]) => list.map((loop) => loop.toSorted()).toSorted();
    t.deepEqual(sorted(redirectLoops(rowsOf(redirects), site)), sorted(keys));
  });
}

test('a source for every host is followed on each host that sources name, where all hosts are named', (t) => {
  const one = { ...site, domains: [parseDomain('a.example')!] };
  t.deepEqual(
    redirectLoops(
      rowsOf([
        ['/x', '/x'],
        ['a.example/x', '/y'],
        ['/z', '/z'],
      ]),
      one,
    ),
    [['/z']],
  );
});

test('each redirect of a loop has a warning that gives the way back to its source', (t) => {
  const warnings = redirectWarnings(
    rowsOf([
      ['/a', '/b'],
      ['/b', '/a'],
      ['/c', '/d'],
    ]),
    site,
  );
  t.deepEqual(
    warnings.map(({ source, code, params }) => [source, code, params.through]),
    [
      ['/a', 'loops', '/a → /b → /a'],
      ['/b', 'loops', '/b → /a → /b'],
    ],
  );
});

test('a loop of 5,000 redirects has 100 warnings, each with five of its sources', (t) => {
  const pairs = Array.from({ length: 5000 }, (_, i) => [`/old/${i}`, `/old/${(i + 1) % 5000}`] as const);
  const warnings = redirectWarnings(rowsOf(pairs), site);
  t.is(warnings.length, 100);
  t.is(warnings[0]!.params.through, '/old/0 → /old/1 → /old/2 → /old/3 → /old/4 → … → /old/0');
});
