// The form of a condition: what it shows and writes again is the same condition, and the rest is refused.
import test from 'ava';
import fc from 'fast-check';
import {
  type BuilderRow,
  builderOf,
  conditionOf,
  newRow,
  rowOperators,
  withField,
  withOperator,
} from '../../../../../../console/src/features/rules/expression/builder.ts';
import { checkCondition } from '../../../../../../contract/expression/expression.ts';
import { formatTree } from '../../../../../../contract/expression/format.ts';
import { conditions } from '../../../../../helpers/expressions.ts';

const OPTIONS = { phase: 'waf-custom' } as const;

function formOf(source: string) {
  const result = checkCondition(source, OPTIONS);
  if (!result.valid) throw new Error(`${source}: ${result.error.message}`);
  return { formatted: formatTree(result.tree), builder: builderOf(result.tree) };
}

const SHOWN = [
  'true',
  'http.host eq "www.example.com"',
  'http.request.method in {"POST" "PUT"} and starts_with(http.request.uri.path, "/admin/")',
  'not ip.src in $office or ip.src in {10.0.0.0/8 2001:db8::/32} and ssl eq false',
  'http.request.headers["x-api-version"] ne "" and edge.server_port ge 8000',
  'not ends_with(http.request.uri.path, ".php") or not http.user_agent matches "(curl|wget)"',
  'ip.geoip.asnum in {-1 64496}',
  'http.request.cookies["Beta"] strict wildcard "a*"',
  'not http.host eq "a"',
];
const NOT_SHOWN = [
  'false',
  'http.host eq "a" and (ssl eq true or ssl eq false)',
  'not (ssl eq true or ssl eq false)',
  'not not ssl eq true',
  'lower(http.host) eq "a"',
  'len(http.host) gt 3',
  'starts_with(lower(http.host), "a")',
  'starts_with(http.host, http.referer)',
  'http.host eq "a\\nb"',
  'http.host in {"a b" " c"}',
  'http.host in {""}',
];

for (const source of SHOWN)
  test(`${source} is a form, which writes it again`, (t) => {
    const { formatted, builder } = formOf(source);
    if (!builder) return t.fail('it is not shown');
    t.is(formOf(conditionOf(builder).text).formatted, formatted);
  });

for (const source of NOT_SHOWN) test(`${source} cannot be shown as a form`, (t) => t.is(formOf(source).builder, null));

test('whatever is shown as a form means the same when it is written again', (t) => {
  let shown = 0;
  fc.assert(
    fc.property(conditions, (source) => {
      const result = checkCondition(source, OPTIONS);
      const builder = result.valid ? builderOf(result.tree) : null;
      if (!result.valid || !builder) return;
      shown++;
      t.is(formOf(conditionOf(builder).text).formatted, formatTree(result.tree));
    }),
    { numRuns: 3000 },
  );
  t.true(shown > 100, `${shown}`);
});

test('each row knows where it stands in the text', (t) => {
  const { builder } = formOf('http.host eq "a" and ssl eq true or edge.server_port gt 1');
  const { text, spans } = conditionOf(builder!);
  t.deepEqual(
    spans.map((rows) => rows.map(({ at, end }) => text.slice(at, end))),
    [['http.host eq "a"', 'ssl eq true'], ['edge.server_port gt 1']],
  );
});

test('a row about another field keeps what goes with it', (t) => {
  const row: BuilderRow = { ...newRow('http.host'), operator: 'contains', value: 'a' };
  t.deepEqual(withField(row, 'http.referer'), { ...row, field: 'http.referer' });
  t.deepEqual(withField(row, 'ssl'), newRow('ssl'));
  t.is(withField({ ...newRow('http.request.headers'), name: 'a' }, 'http.request.cookies').name, 'a');
});

test('a row with another operator keeps a value of the same form', (t) => {
  const row: BuilderRow = { ...newRow('ip.src'), operator: 'in', value: '10.0.0.1\n10.0.0.2' };
  t.is(withOperator(row, 'eq').value, '10.0.0.1');
  t.is(withOperator(row, 'in_list').value, '');
  t.is(withOperator({ ...row, operator: 'eq', value: '10.0.0.1' }, 'in').value, '10.0.0.1');
});

test('each type has its operators', (t) => {
  t.deepEqual(rowOperators('boolean'), ['eq', 'ne', 'in']);
  t.true(rowOperators('ip').includes('in_list'));
  t.true(rowOperators('string').includes('starts_with'));
  t.false(rowOperators('number').includes('contains'));
});
