// Which field of which rule a refused save is about: errors as the server throws them for rules that it does not take.
import test from 'ava';
import { newAction } from '../../../../../../console/src/features/rules/action.ts';
import {
  type ActionOf,
  type DraftRule,
  inputOf,
  type RuleAction,
} from '../../../../../../console/src/features/rules/rule.ts';
import { refusedFields } from '../../../../../../console/src/features/rules/rule-refusals.ts';
import { CallError } from '../../../../../../console/src/shared/api/call-error.ts';
import type { ContractError } from '../../../../../../contract/errors.ts';
import * as contract from '../../../../../../contract/scalars/rule-action.ts';
import { checkRules } from '../../../../../../services/rules/check-rules.ts';

const ACTIONS = JSON.parse(JSON.stringify(contract));
const origin = newAction(ACTIONS, 'origin') as ActionOf<'origin'>;
const rule = (action: RuleAction, more: Partial<DraftRule> = {}): DraftRule => ({
  key: 'wrong',
  name: 'Rule',
  phase: contract.ACTION_PHASES[action.kind][0]!,
  expression: 'true',
  enabled: true,
  action,
  ...more,
});
const first = rule({ kind: 'block', statusCode: 403 }, { key: 'first' });

/** The refusal of a list whose second rule is wrong, as a page gets it. */
function refusal(wrong: DraftRule): CallError {
  try {
    checkRules(inputOf([first, wrong]), [], new Set());
  } catch (thrown) {
    const { type, message, code, data } = thrown as ContractError;
    return new CallError(type, message, code, data);
  }
  throw new Error('the server takes it');
}
/** Key, field and what is wrong, for each field that is named. */
const told = (error: CallError) =>
  refusedFields(error, [first, rule(origin)]).map(
    ({ key, path, why }) => `${key} ${path} ${why instanceof CallError ? why.code : why.keyword}`,
  );

test('a host header that is none is told at the host header of its rule', (t) => {
  t.deepEqual(told(refusal(rule({ ...origin, hostHeader: 'a/b' }))), [
    'wrong action.hostHeader ORIGIN_HOST_HEADER_INVALID',
  ]);
});

test('a server name that is none is told at the server name of its rule', (t) => {
  t.deepEqual(told(refusal(rule({ ...origin, sni: 'not a name' }))), ['wrong action.sni hostName']);
});

test('an action that changes nothing is told of the whole action', (t) => {
  t.deepEqual(told(refusal(rule(origin))), ['wrong action noChange']);
});

test('expressions and groups of origins are told at their fields', (t) => {
  t.deepEqual(told(refusal(rule({ ...origin, port: 8080 }, { expression: 'nosuch' }))), [
    'wrong expression RULE_INVALID',
  ]);
  t.deepEqual(told(refusal(rule({ ...origin, originGroup: 'nosuch' }))), ['wrong action.originGroup RULE_INVALID']);
});

test('what is about no rule of the list is told of none', (t) => {
  const issue = (path: string) => ({ path, keyword: 'pattern', params: {} });
  const paths = ['/rules', '/rules/2/name', '/expectedUpdatedAt', '/others/1/name'];
  t.deepEqual(told(new CallError('BAD_REQUEST', '', 400, { issues: paths.map(issue) })), []);
  t.deepEqual(told(new CallError('IP_LIST_REFERENCE_UNKNOWN', '', 400, { lists: ['office'] })), []);
});
