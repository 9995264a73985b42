// Capabilities of rules, row by row as the specification's paragraph has them.
import test from 'ava';
import type { Phase } from '../../../../contract/expression/phases.ts';
import type { RuleAction } from '../../../../contract/scalars/rule-action.ts';
import { capabilitiesOfRules } from '../../../../models/rules/rule-capabilities.ts';
import { type CheckedRule, checkRule } from '../../../../models/rules/rule-message.ts';
import { ACTIONS, ruleWith } from '../../../helpers/rules.ts';

const BASE = ['rules-v1'];
const V2 = ['rules-v1', 'rules-v2'];
const V3 = ['rules-v1', 'rules-v3'];
const V23 = ['rules-v1', 'rules-v2', 'rules-v3'];

function features(action: RuleAction, expression = 'true', phase?: Phase): string[] {
  return capabilitiesOfRules([checkRule(ruleWith(action, { expression, ...(phase ? { phase } : {}) })) as CheckedRule]);
}

const { log, block, allow, challenge, redirect, rewrite, request_header, response_header, rate_limit, origin } =
  ACTIONS;

const CONDITIONS: [source: string, needed: string[], phase?: Phase][] = [
  ['http.host eq "a" and http.request.method eq "GET" or ip.src eq 192.0.2.1', BASE],
  ['http.request.uri.path contains "a" and not http.request.uri.query matches "b"', BASE],
  ['http.request.headers["x-a"] eq "1" and ssl eq true and ip.src in $office', BASE],
  ['http.request.cookies["a"] eq "1"', V3],
  ['http.request.uri.args["a"] eq "1"', V3],
  ['http.referer eq ""', V3],
  ['http.user_agent eq ""', V3],
  ['http.request.version eq "HTTP/1.0"', V3],
  ['http.request.scheme eq "http"', V3],
  ['http.request.id eq ""', V3],
  ['http.request.timestamp.sec gt 1', V3],
  ['edge.server_port eq 80', V3],
  ['ip.geoip.as_name eq ""', ['geoip-asn-v1', ...V3]],
  ['ip.geoip.asnum eq 1', ['geoip-asn-v1', ...BASE]],
  ['ip.geoip.country eq "DE"', ['geoip-country-v1', ...BASE]],
  ['ip.peer eq 192.0.2.1', ['client-ip-v1', ...BASE]],
  ['tls.ja4 eq ""', ['ja4-v1', ...BASE]],
  ['http.request.uri.path.extension eq "css"', V2],
  ['http.request.full_uri eq "a"', V2],
  ['starts_with(http.host, "a")', V2],
  ['ends_with(http.host, "a")', V2],
  ['lower(http.host) eq "a"', V2],
  ['upper(http.host) eq "A"', V2],
  ['len(http.host) gt 3', V2],
  ['url_decode(http.host) eq "a"', V2],
  ['url_encode(http.host) eq "a"', V23],
  ['base64_encode(http.host) eq "a"', V23],
  ['base64_decode(http.host) eq "a"', V23],
  ['md5(http.host) eq "a"', V23],
  ['sha1(http.host) eq "a"', V23],
  ['sha256(http.host) eq "a"', V23],
  ['substring(http.host, 1) eq "a"', V23],
  ['to_string(edge.server_port) eq "80"', V23],
  ['http.host wildcard "a*"', V3],
  ['http.host strict wildcard "a*"', V3],
  ['http.response.code eq 404', BASE, 'response-transform'],
  ['http.response.content_type.media_type eq "a/b"', V2, 'response-transform'],
  ['http.response.cache_status eq "HIT"', V3, 'response-transform'],
];

for (const [source, needed, phase] of CONDITIONS) {
  test(`a condition needs it: ${source}`, (t) => {
    t.deepEqual(features(phase ? response_header : log, source, phase), needed);
  });
}

const ACTION_ROWS: [what: string, action: RuleAction, needed: string[]][] = [
  ['block', block, BASE],
  ['allow', allow, BASE],
  ['log, which nodes need not report', log, BASE],
  ['challenge', challenge, ['challenge-v1', ...BASE]],
  ['a redirect to a fixed place', redirect, BASE],
  ['a redirect with 303', { ...redirect, statusCode: 303 }, V3],
  ['a computed redirect', { ...redirect, value: '', target: 'http.request.uri.path' }, V2],
  ['regex_replace', { ...redirect, value: '', target: 'regex_replace(http.host, "a", "b")' }, V23],
  ['an edited query', { ...redirect, setQuery: [{ name: 'a', value: 'b', expression: '' }] }, V2],
  ['a shortened query', { ...redirect, removeQuery: ['a'] }, V2],
  ['a computed parameter', { ...redirect, setQuery: [{ name: 'a', value: '', expression: 'http.host' }] }, V23],
  ['a rewrite to a fixed place', rewrite, BASE],
  ['a computed rewrite', { ...rewrite, value: '', target: 'http.request.uri.path' }, V2],
  ['a rewrite with an edited query', { ...rewrite, removeQuery: ['a'] }, V2],
  ['a request header', request_header, BASE],
  ['a computed request header', { ...request_header, value: '', expression: 'http.host' }, V23],
  ['a removed header', { ...request_header, value: '', remove: true }, BASE],
  ['a response header', response_header, BASE],
  ['a computed response header', { ...response_header, value: '', expression: 'http.host' }, V23],
  ['an appended header', { ...response_header, append: true }, V3],
  ['a rate limit', rate_limit, BASE],
  ['a rate limit by a header', { ...rate_limit, key: 'http.request.headers.x-a' }, BASE],
  ['a rate limit by JA4', { ...rate_limit, key: 'tls.ja4' }, ['ja4-v1', ...BASE]],
  ['an origin', origin, V2],
  ['a group of origins', { ...origin, originGroup: 'eu' }, V2],
  ['compression', ACTIONS.compression, V2],
  ['config cacheBypass', { kind: 'config', cacheBypass: true }, BASE],
  ['config forceHttps', { kind: 'config', forceHttps: true }, BASE],
  ['config gzip off', { kind: 'config', gzip: false }, BASE],
  ['config gzip on', { kind: 'config', gzip: true }, V2],
  ['config requestBodyLimit', { kind: 'config', requestBodyLimit: 0 }, V2],
  ['config brotli', { kind: 'config', brotli: false }, V2],
  ['config zstd', { kind: 'config', zstd: true }, V2],
  ['config websocket', { kind: 'config', websocket: false }, V2],
  ['config originConnectTimeoutMs', { kind: 'config', originConnectTimeoutMs: 100 }, V2],
  ['config originSendTimeoutMs', { kind: 'config', originSendTimeoutMs: 100 }, V2],
  ['config originReadTimeoutMs', { kind: 'config', originReadTimeoutMs: 100 }, V2],
  ['config logSampleRate', { kind: 'config', logSampleRate: 0 }, V2],
  ['config underAttack', { kind: 'config', underAttack: true }, ['challenge-v1', ...V2]],
  ['config underAttack off', { kind: 'config', underAttack: false }, V2],
  ['config ccEnabled', { kind: 'config', ccEnabled: true }, ['challenge-v1', ...V2]],
  ['config ccEnabled off', { kind: 'config', ccEnabled: false }, V2],
  ['config ccMaxLevel', { kind: 'config', ccMaxLevel: 'pow' }, ['challenge-v1', ...V2]],
];

for (const [what, action, needed] of ACTION_ROWS) {
  test(`an action needs it: ${what}`, (t) => t.deepEqual(features(action), needed));
}

test('rules need together what each needs, and none need nothing', (t) => {
  const rules = [ruleWith(challenge), ruleWith(origin)].map((rule) => checkRule(rule) as CheckedRule);
  t.deepEqual(capabilitiesOfRules(rules), ['challenge-v1', ...V2]);
  t.deepEqual(capabilitiesOfRules([]), []);
});
