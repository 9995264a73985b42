// Lists of rules that are edited: their order, what differs between two of them, how two people's edits come together, and
// files.
import test from 'ava';
import {
  configFields,
  kindsOf,
  newAction,
  problemsOfAction,
} from '../../../../../../console/src/features/rules/action.ts';
import {
  type DraftRule,
  draftOf,
  inputOf,
  movedInPhase,
  type Rule,
} from '../../../../../../console/src/features/rules/rule.ts';
import { rulesDiff } from '../../../../../../console/src/features/rules/rule-diff.ts';
import { readRulesFile, rulesFile } from '../../../../../../console/src/features/rules/rule-json.ts';
import { mergeRules, withTheirs } from '../../../../../../console/src/features/rules/rule-merge.ts';
import { templatesFor } from '../../../../../../console/src/features/rules/templates.ts';
import { checkCondition, checkValue } from '../../../../../../contract/expression/expression.ts';
import { PHASES } from '../../../../../../contract/expression/phases.ts';
import { RuleInput } from '../../../../../../contract/scalars/rule.ts';
import * as contract from '../../../../../../contract/scalars/rule-action.ts';

/** What pages have of it: data. */
const ACTIONS = JSON.parse(
  JSON.stringify({
    RULE_ACTIONS: contract.RULE_ACTIONS,
    ACTION_PHASES: contract.ACTION_PHASES,
    CACHE_PHASE_CONFIG: contract.CACHE_PHASE_CONFIG,
  }),
);
const SCHEMA = JSON.parse(JSON.stringify(RuleInput));

const rule = (id: string, more: Partial<Rule> = {}): Rule => ({
  id,
  name: id,
  phase: 'waf-custom',
  expression: 'true',
  enabled: true,
  action: { kind: 'block', statusCode: 403 },
  ...more,
});
const [a, b, c] = ['a', 'b', 'c'].map((id) => rule(id)) as [Rule, Rule, Rule];
const redirect = rule('r', {
  phase: 'redirect',
  action: {
    kind: 'redirect',
    value: '/',
    target: '',
    statusCode: 301,
    preserveQuery: false,
    setQuery: [],
    removeQuery: [],
  },
});
const drafts = (...rules: Rule[]) => rules.map(draftOf);
const added = (key: string): DraftRule => {
  const { id: _id, ...rest } = rule(key);
  return { ...rest, key };
};
const keys = (rules: readonly DraftRule[]) => rules.map(({ key }) => key).join(' ');

test('a rule moves among those of its phase, and the others keep their places', (t) => {
  const list = drafts(a, redirect, b, c);
  t.is(keys(movedInPhase(list, 'c', 0)), 'c r a b');
  t.is(keys(movedInPhase(list, 'a', 1)), 'b r a c');
  t.is(keys(movedInPhase(list, 'r', 1)), 'a r b c', 'there is no such place');
  t.is(keys(movedInPhase(list, 'nobody', 0)), 'a r b c');
});

test('what is sent has no keys of the page', (t) => {
  t.deepEqual(inputOf([added('new 1'), ...drafts(b)]), [{ ...inputOf([added('x')])[0]!, name: 'new 1' }, b]);
});

test('the difference names what was added, changed, moved and removed', (t) => {
  const changed = { ...draftOf(b), name: 'other', enabled: false };
  const difference = rulesDiff([a, b, c, redirect], [changed, ...drafts(a, redirect), added('n')]);
  t.deepEqual(
    difference.map((change) => [change.what, change.rule.name]),
    [
      ['changed', 'other'],
      ['moved', 'a'],
      ['added', 'n'],
      ['removed', 'c'],
    ],
  );
  t.deepEqual(difference[0]?.what === 'changed' && difference[0].parts, ['name', 'enabled']);
  t.deepEqual(rulesDiff([a, b], drafts(a, b)), []);
});

test('as few rules as possible count as moved', (t) => {
  const [d, e] = [rule('d'), rule('e')];
  const moved = rulesDiff([a, b, c, d, e], drafts(e, a, b, c, d)).map((change) => ({
    ...change,
    rule: change.rule.name,
  }));
  t.deepEqual(moved as unknown, [{ what: 'moved', rule: 'e', from: 5, to: 1 }]);
});

test('of rules that may count as moved it is those that a person moved', (t) => {
  const moved = (list: readonly DraftRule[], ...picked: string[]) =>
    rulesDiff([a, b, c], list, new Set(picked)).map((change) =>
      change.what === 'moved' ? `${change.rule.name} ${change.from} ${change.to}` : change.what,
    );
  t.deepEqual(moved(drafts(b, a, c), 'b'), ['b 2 1']);
  t.deepEqual(moved(drafts(b, a, c), 'a'), ['a 1 2']);
  t.deepEqual(moved(drafts(b, c, a), 'b', 'c'), ['a 1 3'], 'as few as possible');
  t.deepEqual(moved(drafts(a, b, c), 'a'), [], 'it was moved back');
});

test('edits of different rules come together', (t) => {
  const mine = [{ ...draftOf(a), name: 'mine' }, ...drafts(b, c)];
  const theirs = [a, { ...b, enabled: false }, c];
  const { rules, conflicts } = mergeRules([a, b, c], mine, theirs);
  t.deepEqual(conflicts, []);
  t.deepEqual(
    rules.map(({ name, enabled }) => [name, enabled]),
    [
      ['mine', true],
      ['b', false],
      ['c', true],
    ],
  );
});

test('edits of different parts of one rule come together, edits of the same part are a conflict', (t) => {
  const parts = mergeRules([a], [{ ...draftOf(a), name: 'mine' }], [{ ...a, enabled: false }]);
  t.deepEqual(parts.conflicts, []);
  t.like(parts.rules[0], { name: 'mine', enabled: false });
  const same = mergeRules([a], [{ ...draftOf(a), name: 'mine' }], [{ ...a, name: 'theirs' }]);
  t.is(same.conflicts.length, 1);
  t.is(same.rules[0]?.name, 'mine', 'mine until a person chooses');
  t.is(withTheirs(same.rules, same.conflicts)[0]?.name, 'theirs');
  const equal = mergeRules([a], [{ ...draftOf(a), name: 'x' }], [{ ...a, name: 'x' }]);
  t.deepEqual(equal.conflicts, []);
});

test('what one deleted and the other changed is a conflict', (t) => {
  const changed = { ...draftOf(a), name: 'mine' };
  const deletedByThem = mergeRules([a, b], [changed, draftOf(b)], [b]);
  t.is(deletedByThem.conflicts[0]?.theirs, null);
  t.is(keys(deletedByThem.rules), 'a b');
  t.is(keys(withTheirs(deletedByThem.rules, deletedByThem.conflicts)), 'b');
  const deletedByMe = mergeRules([a, b], drafts(b), [{ ...a, name: 'theirs' }, b]);
  t.is(keys(deletedByMe.rules), 'b');
  t.is(withTheirs(deletedByMe.rules, deletedByMe.conflicts).length, 2);
  t.deepEqual(mergeRules([a, b], drafts(b), [b]).conflicts, [], 'both deleted it');
});

test('what both added is there, and whose order changed counts', (t) => {
  const theirs = [a, rule('t'), b];
  t.is(keys(mergeRules([a, b], [...drafts(a, b), added('n')], theirs).rules), 'a t b n');
  t.is(keys(mergeRules([a, b], drafts(b, a), theirs).rules), 'b a t');
  t.is(keys(mergeRules([a, b], drafts(a, b), [b, a]).rules), 'b a');
});

test('each kind of action begins with values that the contract takes, in a phase that has it', (t) => {
  for (const kind of contract.ACTION_KINDS) {
    const [phase] = contract.ACTION_PHASES[kind];
    const wrong = problemsOfAction(ACTIONS, phase!, newAction(ACTIONS, kind)).map(({ keyword }) => keyword);
    // What a person has to say cannot be there from the start.
    const expected: Record<string, string[]> = {
      redirect: ['valueOrTarget'],
      rewrite: ['valueOrTarget'],
      request_header: ['pattern'],
      response_header: ['pattern'],
      config: ['noChange'],
      origin: ['noChange'],
    };
    t.deepEqual(wrong, expected[kind] ?? [], kind);
    t.true(kindsOf(ACTIONS, phase!).includes(kind));
  }
  t.true(PHASES.every((phase) => kindsOf(ACTIONS, phase).length > 0));
});

test('an action that does not fit together is told at its field', (t) => {
  const issues = (action: unknown, phase = 'redirect') =>
    problemsOfAction(ACTIONS, phase as 'redirect', action as Rule['action']).map(
      ({ path, keyword }) => `${path} ${keyword}`,
    );
  const parameter = { name: 'x', value: '', expression: '' };
  t.deepEqual(issues({ ...redirect.action, value: '//host' }), ['/value redirectTarget']);
  t.deepEqual(issues({ ...redirect.action, setQuery: [parameter, parameter], removeQuery: ['x'] }), [
    '/setQuery/1/name repeated',
    '/removeQuery/0 repeated',
  ]);
  t.deepEqual(issues(redirect.action, 'waf-custom'), ['/kind phase']);
  t.deepEqual(issues({ kind: 'config', brotli: true }, 'cache'), ['/brotli phase']);
  t.false(configFields(ACTIONS, 'cache').includes('brotli'));
  t.deepEqual(
    issues({ kind: 'request_header', header: 'Cookie', value: 'a', expression: '', remove: false }, 'origin'),
    ['/header forbiddenName'],
  );
});

test('a file that was written is read again as the same rules', (t) => {
  const list = [...drafts(a, redirect), added('new 1')];
  const read = readRulesFile(rulesFile(list), ACTIONS, SCHEMA, new Set(['a', 'r']), 64, () => 'fresh');
  t.deepEqual(read.problems, []);
  t.deepEqual(inputOf(read.rules), inputOf(list));
  t.deepEqual(
    read.rules.map(({ key }) => key),
    ['a', 'r', 'fresh'],
  );
});

test('a file may leave out what has a default, and ids of others are forgotten', (t) => {
  const text = JSON.stringify([
    { id: 'elsewhere', name: 'x', phase: 'redirect', expression: 'true', action: { kind: 'redirect', value: '/a' } },
  ]);
  const { rules, problems } = readRulesFile(text, ACTIONS, SCHEMA, new Set(['a']), 64, () => 'k');
  t.deepEqual(problems, []);
  t.like(rules[0], { key: 'k', enabled: false, action: { kind: 'redirect', statusCode: 301, preserveQuery: false } });
  t.false('id' in rules[0]!);
});

test('what is wrong with a file is told with its rule and field', (t) => {
  const read = (text: string) =>
    readRulesFile(text, ACTIONS, SCHEMA, new Set(), 2, () => 'k').problems.map(
      ({ rule: number, issue }) => `${number} ${issue.path} ${issue.keyword}`,
    );
  t.deepEqual(read('{'), ['0  json']);
  t.deepEqual(read('{"rules":1}'), ['0  rulesFile']);
  t.deepEqual(read('null'), ['0  rulesFile']);
  t.deepEqual(read('[1,2,3]'), ['0  maxItems']);
  t.deepEqual(read('[1]'), ['1  object']);
  const good = { name: 'x', phase: 'redirect', expression: 'true', action: { kind: 'redirect', value: '/' } };
  t.deepEqual(read(JSON.stringify([good, { ...good, name: undefined }])), ['2 /name required']);
  t.deepEqual(read(JSON.stringify([{ ...good, action: { kind: 'nosuch' } }])), ['1 /action/kind enum']);
  t.deepEqual(read(JSON.stringify([{ ...good, action: { kind: 'redirect', statusCode: 200 } }])), [
    '1 /action/statusCode const',
  ]);
  t.deepEqual(read(JSON.stringify([{ ...good, more: 1 }])), ['1 /more additionalProperties']);
});

test('every template is a rule that can be saved', (t) => {
  for (const { name, phase, expression, action } of templatesFor('example.com')) {
    t.true(checkCondition(expression, { phase }).valid, name);
    const whole = { ...newAction(ACTIONS, action.kind), ...action } as Rule['action'];
    t.deepEqual(problemsOfAction(ACTIONS, phase, whole), [], name);
    if ('target' in whole && whole.target) t.true(checkValue(whole.target, { phase }).valid, name);
  }
});
