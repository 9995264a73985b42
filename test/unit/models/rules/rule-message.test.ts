// Rules as nodes get them.
import { fromBinary } from '@bufbuild/protobuf';
import test from 'ava';
import type { Rule } from '../../../../contract/scalars/rule.ts';
import type { RuleAction } from '../../../../contract/scalars/rule-action.ts';
import { compileRules, recompileRules } from '../../../../models/rules/compiled-rules.ts';
import { type CheckedRule, checkRule, ruleMessage, unusableRule } from '../../../../models/rules/rule-message.ts';
import { ExpressionSchema } from '../../../../proto/gen/svc/config/v1/expression_pb.js';
import { ChallengeType } from '../../../../proto/gen/svc/config/v1/protection_pb.js';
import { Coding, RateLimitKey, RulePhase, SiteRulesSchema } from '../../../../proto/gen/svc/config/v1/rules_pb.js';
import { ACTIONS, ruleWith } from '../../../helpers/rules.ts';

const LISTS = new Map([['office', 'list-1']]);
const checked = (rule: Rule) => checkRule(rule) as CheckedRule;
const messageOf = (action: RuleAction) => ruleMessage(checked(ruleWith(action)), LISTS);
/** Fields of the action, without what the library adds. */
const fieldsOf = (action: RuleAction) => {
  const { case: name, value } = messageOf(action).action;
  return {
    name,
    ...JSON.parse(
      JSON.stringify(value, (key, one) =>
        key === '$typeName' ? undefined : typeof one === 'bigint' ? Number(one) : one,
      ),
    ),
  };
};

test('each action has its message', (t) => {
  const text = (value: string) => ({ value: { case: 'text', value } });
  const none = { set: [], remove: [] };
  t.deepEqual(fieldsOf({ kind: 'block', statusCode: 451 }), { name: 'block', status: 451 });
  t.deepEqual(fieldsOf(ACTIONS.log), { name: 'log' });
  t.deepEqual(fieldsOf(ACTIONS.allow), { name: 'allow' });
  t.deepEqual(fieldsOf({ kind: 'challenge', type: 'pow' }), { name: 'challenge', type: ChallengeType.POW });
  t.deepEqual(fieldsOf(ACTIONS.redirect), {
    name: 'redirect',
    target: text('/to'),
    status: 301,
    query: { preserve: false, ...none },
  });
  t.deepEqual(fieldsOf(ACTIONS.rewrite), { name: 'rewrite', target: text('/to'), query: { preserve: true, ...none } });
  t.like(messageOf(ACTIONS.request_header).action, {
    ...{ case: 'requestHeader', value: { name: 'x-a', append: false, value: text('b') } },
  });
  t.like(messageOf({ ...ACTIONS.response_header, append: true }).action.value, { name: 'x-a', append: true });
  t.is(
    (messageOf({ ...ACTIONS.request_header, value: '', remove: true }).action.value as { value?: object }).value,
    undefined,
  );
  t.deepEqual(fieldsOf({ kind: 'config', gzip: false, requestBodyLimit: 0, ccMaxLevel: 'js', logSampleRate: 0 }), {
    name: 'config',
    ...{ gzip: false, requestBodyLimit: 0, ccMaxLevel: ChallengeType.JS, logSampleRate: 0 },
  });
  t.like(messageOf(ACTIONS.rate_limit).action.value, {
    ...{ limit: 10, windowSeconds: 60, key: RateLimitKey.ADDRESS, header: '', status: 429 },
  });
  t.like(messageOf({ ...ACTIONS.rate_limit, key: 'http.host' }).action.value, { key: RateLimitKey.HOST });
  t.like(messageOf({ ...ACTIONS.rate_limit, key: 'tls.ja4' }).action.value, { key: RateLimitKey.JA4 });
  t.like(messageOf({ ...ACTIONS.rate_limit, key: 'http.request.headers.x-k' }).action.value, {
    ...{ key: RateLimitKey.HEADER, header: 'x-k' },
  });
  t.deepEqual(fieldsOf({ kind: 'origin', originGroup: 'eu', hostHeader: 'a.example', sni: 'b.example', port: 8080 }), {
    name: 'origin',
    ...{ group: 'eu', hostHeader: 'a.example', sni: 'b.example', port: 8080 },
  });
  t.deepEqual(fieldsOf(ACTIONS.compression), { name: 'compression', codings: [Coding.ZSTD, Coding.GZIP] });
});

test('phases go by their order, and expressions as bytes of their own', (t) => {
  const message = messageOf(ACTIONS.compression);
  t.is(message.phase, RulePhase.COMPRESSION);
  t.is(messageOf(ACTIONS.rewrite).phase, RulePhase.REQUEST_TRANSFORM);
  t.truthy(fromBinary(ExpressionSchema, message.condition).root);
});

test('parameters are sorted by name, each with its own expression', (t) => {
  const setQuery = [
    { name: 'b', value: '1', expression: '' },
    { name: 'a', value: '', expression: 'http.host' },
  ];
  const { value } = messageOf({ ...ACTIONS.redirect, setQuery }).action;
  const { set } = (value as { query: { set: { name: string; value: { value: { case: string } } }[] } }).query;
  t.deepEqual(
    set.map((one) => [one.name, one.value.value.case]),
    [
      ['a', 'expression'],
      ['b', 'text'],
    ],
  );
});

test('the first expression that is not valid is answered with its field', (t) => {
  const faulty = (rule: Rule) => {
    const result = checkRule(rule);
    return 'error' in result ? [result.field, result.error.code, result.error.position] : null;
  };
  t.deepEqual(faulty(ruleWith(ACTIONS.log, { expression: 'http.hots eq "a"' })), ['/expression', 'unknown_field', 0]);
  const target = { ...ACTIONS.redirect, value: '', target: 'lower(ssl)' };
  t.is(faulty(ruleWith(target))?.[0], '/action/target');
  const setQuery = [
    { name: 'a', value: '', expression: 'http.host' },
    { name: 'b', value: '', expression: '' },
    { name: 'c', value: '', expression: '7' },
  ];
  t.is(faulty(ruleWith({ ...ACTIONS.rewrite, setQuery }))?.[0], '/action/setQuery/2/expression');
  t.is(faulty(ruleWith({ ...ACTIONS.request_header, value: '', expression: '(' }))?.[0], '/action/expression');
  // Fields of the response stand in the last phases only.
  const response = { expression: 'http.response.code eq 404' };
  t.is(faulty(ruleWith(ACTIONS.origin, response))?.[1], 'response_field');
  t.is(faulty(ruleWith(ACTIONS.response_header, response)), null);
});

test('an entry has what is enabled, and refers to the lists and groups of that', (t) => {
  const rules = [
    ruleWith(ACTIONS.log, { id: 'a', expression: 'ip.src in $office' }),
    ruleWith(ACTIONS.challenge, { id: 'b', enabled: false }),
    ruleWith({ ...ACTIONS.origin, originGroup: 'eu' }, { id: 'c' }),
  ];
  const entry = compileRules(rules.map(checked), 'site-1', LISTS)!;
  t.deepEqual(
    fromBinary(SiteRulesSchema, entry.body).rules.map(({ id }) => id),
    ['a', 'c'],
  );
  t.deepEqual(entry.refs, ['group:site-1/eu', 'list:list-1']);
  t.deepEqual(entry.features, ['rules-v1', 'rules-v2']);
  t.is(compileRules([checked(rules[1]!)], 'site-1', LISTS), null);
});

test('what does not compile any more stays as it was compiled last; what never was lets no node take the entry', (t) => {
  const good = ruleWith(ACTIONS.block, { id: 'good' });
  const former = compileRules([checked(good), checked(ruleWith(ACTIONS.challenge, { id: 'old' }))], 'site-1', LISTS);
  const stored = [good, ruleWith(ACTIONS.log, { id: 'old', expression: 'no.such.field eq 1' })];
  const { entry, broken } = recompileRules(stored, 'site-1', LISTS, former);
  t.deepEqual(
    broken.map(({ rule, error }) => [rule.id, error.code]),
    [['old', 'unknown_field']],
  );
  const kept = fromBinary(SiteRulesSchema, entry!.body).rules;
  t.deepEqual(
    kept.map(({ id, action }) => [id, action.case]),
    [
      ['good', 'block'],
      ['old', 'challenge'],
    ],
  );
  t.deepEqual(entry!.features, ['challenge-v1', 'rules-v1']);

  const never = recompileRules(stored, 'site-1', LISTS, null).entry!;
  t.deepEqual(fromBinary(SiteRulesSchema, never.body).rules[1], unusableRule(stored[1]!));
  t.is(unusableRule(stored[1]!).condition.length, 0);
  t.is(unusableRule(stored[1]!).action.case, undefined);

  const listless = recompileRules([ruleWith(ACTIONS.log, { expression: 'ip.src in $gone' })], 'site-1', LISTS, null);
  t.is(listless.broken[0]!.error.code, 'unknown_list');
});
