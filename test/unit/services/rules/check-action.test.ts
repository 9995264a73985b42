// What the schema cannot judge of an action: every refusal with its field and keyword, and the forms that are kept.
import test from 'ava';
import type { ContractError, Issue } from '../../../../contract/errors.ts';
import type { Phase } from '../../../../contract/expression/phases.ts';
import { PHASES } from '../../../../contract/expression/phases.ts';
import { ACTION_PHASES, type ActionKind, type RuleAction } from '../../../../contract/scalars/rule-action.ts';
import { checkAction } from '../../../../services/rules/check-action.ts';
import { ACTIONS } from '../../../helpers/rules.ts';

const AT = '/rules/3/action';
const phaseOf = (action: RuleAction): Phase => ACTION_PHASES[action.kind][0]!;
const check = (action: RuleAction, phase = phaseOf(action)) => checkAction(action, phase, AT);

/** What is refused of it, as `path keyword`; null: nothing. */
function refusal(action: RuleAction, phase?: Phase): string | null {
  try {
    check(action, phase);
    return null;
  } catch (error) {
    const [issue] = (error as ContractError).data.issues as [Issue];
    return `${issue.path.slice(AT.length)} ${issue.keyword}`;
  }
}

for (const kind of Object.keys(ACTIONS) as ActionKind[]) {
  test(`${kind} stands in its phases and in no other`, (t) => {
    const allowed = PHASES.filter((phase) => refusal(ACTIONS[kind], phase) === null);
    t.deepEqual(allowed, [...ACTION_PHASES[kind]]);
    const other = PHASES.find((phase) => !allowed.includes(phase))!;
    t.is(refusal(ACTIONS[kind], other), '/kind phase');
  });
}

const { redirect, rewrite, request_header, response_header, origin, rate_limit } = ACTIONS;
const computed = { ...redirect, value: '', target: 'http.request.uri.path' };
const parameter = (name: string, value = '', expression = '') => ({ name, value, expression });

const REFUSED: [action: RuleAction, refused: string][] = [
  [{ ...redirect, value: '' }, '/value valueOrTarget'],
  [{ ...redirect, target: 'http.host' }, '/target forbidden'],
  [{ ...redirect, value: '//other.example' }, '/value redirectTarget'],
  [{ ...redirect, value: 'to' }, '/value redirectTarget'],
  [{ ...redirect, value: 'ftp://a.example/' }, '/value redirectTarget'],
  [{ ...redirect, value: 'javascript:alert(1)' }, '/value redirectTarget'],
  [{ ...redirect, value: 'https://user@a.example/' }, '/value redirectTarget'],
  [{ ...redirect, value: '/a b' }, '/value redirectTarget'],
  [{ ...redirect, value: '/\\a.example' }, '/value redirectTarget'],
  [{ ...redirect, value: '/a\u0001' }, '/value redirectTarget'],
  [{ ...rewrite, value: 'https://a.example/' }, '/value rewriteTarget'],
  [{ ...rewrite, value: '/a?b=c' }, '/value rewriteTarget'],
  [{ ...rewrite, value: '//a' }, '/value rewriteTarget'],
  [{ ...computed, setQuery: [parameter('a', '1'), parameter('a', '2')] }, '/setQuery/1/name repeated'],
  [{ ...computed, setQuery: [parameter('a', '1', 'http.host')] }, '/setQuery/0/value forbidden'],
  [{ ...computed, setQuery: [parameter('a')], removeQuery: ['b', 'a'] }, '/removeQuery/1 repeated'],
  [{ ...request_header, expression: 'http.host' }, '/value forbidden'],
  [{ ...request_header, remove: true }, '/value forbidden'],
  [{ ...request_header, value: '', expression: 'http.host', remove: true }, '/expression forbidden'],
  [{ ...response_header, value: '', remove: true, append: true }, '/append forbidden'],
  [{ kind: 'config' }, ' noChange'],
  [{ ...origin, hostHeader: '' }, ' noChange'],
  [{ ...origin, sni: 'a b' }, '/sni hostName'],
  [{ ...origin, sni: '192.0.2.1' }, '/sni hostName'],
];
for (const [action, refused] of REFUSED) {
  test(`refused: ${JSON.stringify(action)}`, (t) => t.is(refusal(action), refused));
}

const PROTECTED =
  'Host Authorization Proxy-Authorization Cookie Set-Cookie Content-Length Transfer-Encoding Connection Upgrade TE Trailer ' +
  'CDN-Loop X-Svc-Client-IP x-svc-';
for (const header of PROTECTED.split(' ')) {
  test(`no rule sets or removes ${header}`, (t) => {
    for (const action of [request_header, response_header]) {
      t.is(refusal({ ...action, header }), '/header forbiddenName');
      t.is(refusal({ ...action, header, value: '', remove: true }), '/header forbiddenName');
    }
  });
}

test('the phase cache takes what it can do, and the phase config everything', (t) => {
  for (const field of ['cacheBypass', 'forceHttps', 'gzip'] as const) {
    t.is(refusal({ kind: 'config', [field]: true }, 'cache'), null);
  }
  t.is(refusal({ kind: 'config', requestBodyLimit: 0 }, 'cache'), null);
  const others = {
    brotli: true,
    zstd: true,
    websocket: true,
    underAttack: true,
    ccEnabled: true,
    ccMaxLevel: 'js',
    originConnectTimeoutMs: 100,
    originSendTimeoutMs: 100,
    originReadTimeoutMs: 100,
    logSampleRate: 1,
  };
  for (const [field, value] of Object.entries(others)) {
    t.is(refusal({ kind: 'config', [field]: value } as RuleAction, 'cache'), `/${field} phase`);
    t.is(refusal({ kind: 'config', [field]: value } as RuleAction, 'config'), null);
  }
});

test('names of headers are kept in lower case, hosts in canonical form', (t) => {
  t.like(check({ ...request_header, header: 'X-Real-Thing' }), { header: 'x-real-thing' });
  t.like(check({ ...rate_limit, key: 'http.request.headers.X-Key' }), { key: 'http.request.headers.x-key' });
  t.like(check({ ...origin, hostHeader: 'Origin.Example:8080', sni: 'Bücher.Example' }), {
    hostHeader: 'origin.example:8080',
    sni: 'xn--bcher-kva.example',
  });
});

test('a host header of no origin is refused as that of an origin', (t) => {
  const error = t.throws(() => check({ ...origin, hostHeader: 'a/b' })) as ContractError;
  t.is(error.type, 'ORIGIN_HOST_HEADER_INVALID');
  t.deepEqual(error.data, { hostHeader: 'a/b', path: `${AT}/hostHeader` });
});

test('what is allowed goes through as it is', (t) => {
  const fine: RuleAction[] = [
    ...Object.values(ACTIONS),
    computed,
    { ...redirect, value: 'https://[2001:db8::1]:8443/a?b#c' },
    { ...redirect, setQuery: [parameter('a', '1'), parameter('b', '', 'http.host')], removeQuery: ['c'] },
    { ...request_header, value: '' },
    { ...response_header, append: true },
    { ...origin, hostHeader: '', port: 8080 },
    { kind: 'compression', algorithms: [] },
  ];
  for (const action of fine) t.deepEqual(check(action), action);
});
