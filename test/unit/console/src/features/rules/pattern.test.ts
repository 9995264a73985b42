// Redirects from a pattern to a pattern: what is wrong with one, the rule it becomes, and where a URL goes.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: replacements name their stars so
import test from 'ava';
import {
  compilePattern,
  patternFaults,
  previewPattern,
  starsOf,
} from '../../../../../../console/src/features/rules/redirects/pattern.ts';
import { checkCondition, checkValue } from '../../../../../../contract/expression/expression.ts';

const BLOG = { from: '/blog/*', to: '/news/${1}' };
const HOSTS = { from: 'https://*.example.com/*', to: 'https://www.example.org/${1}/${2}' };

test('a pattern becomes a rule that the expression language accepts', (t) => {
  t.deepEqual(compilePattern(BLOG), {
    expression: 'http.request.uri.path wildcard "/blog/*"',
    target: 'wildcard_replace(http.request.uri.path, "/blog/*", "/news/${1}")',
  });
  for (const pattern of [BLOG, HOSTS, { from: '/a"\\*b*', to: '/"${1}' }]) {
    const { expression, target } = compilePattern(pattern);
    t.true(checkCondition(expression, { phase: 'redirect' }).valid, expression);
    t.true(checkValue(target, { phase: 'redirect' }).valid, target);
  }
  t.regex(compilePattern(HOSTS).expression, /^http\.request\.full_uri wildcard /);
});

test('a pattern is a path or a URL, and a target names only stars of its pattern', (t) => {
  t.deepEqual(patternFaults(BLOG), []);
  t.deepEqual(patternFaults(HOSTS), []);
  t.deepEqual(patternFaults({ from: '', to: '' }), ['from', 'to']);
  t.deepEqual(patternFaults({ from: 'blog/*', to: '/news' }), ['from']);
  t.deepEqual(patternFaults({ from: '//blog/*', to: '/news' }), ['from']);
  t.deepEqual(patternFaults({ from: `/${'*/'.repeat(9)}`, to: '/news' }), ['from']);
  t.deepEqual(patternFaults({ from: '/blog/*', to: '/${2}' }), ['to']);
  t.deepEqual(patternFaults({ from: '/blog/*', to: '//elsewhere' }), ['to']);
  t.is(starsOf('/a/*/b/*'), 2);
  t.is(starsOf('/a/\\*'), 0);
});

test('an example URL goes where a node sends it', (t) => {
  const goes = (pattern: typeof BLOG, url: string, keepsQuery = false) => {
    const preview = previewPattern(pattern, url, keepsQuery);
    return preview.kind === 'to' ? preview.location : preview.kind;
  };
  t.is(goes(BLOG, 'https://www.example.com/blog/2026/a?x=1'), '/news/2026/a');
  t.is(goes(BLOG, 'https://www.example.com/blog/2026/a?x=1', true), '/news/2026/a?x=1');
  t.is(goes({ ...BLOG, to: '/news?id=${1}' }, 'https://www.example.com/blog/a?x=1', true), '/news?id=a&x=1');
  t.is(goes(BLOG, 'https://www.example.com/Blog/Keeps-Case'), '/news/Keeps-Case');
  t.is(goes(BLOG, 'https://www.example.com/shop'), 'other');
  t.is(goes(HOSTS, 'https://a.b.example.com:8443/x?y=1'), 'https://www.example.org/a.b/x?y=1');
  // Earlier stars take as little as they can.
  t.is(goes({ from: '/*-*', to: '/${1}/${2}' }, 'https://www.example.com/a-b-c'), '/a/b-c');
  t.is(goes({ from: '/aba*aba', to: '/${1}' }, 'https://www.example.com/aba'), 'other');
  t.is(goes({ from: '/old', to: '/new' }, 'https://www.example.com/old'), '/new');
  t.is(goes(BLOG, 'no URL'), 'unreadable');
  t.is(goes({ from: '', to: '' }, 'https://www.example.com/'), 'unreadable');
});
