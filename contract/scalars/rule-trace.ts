// What became of a made-up request: every rule that it met, in order, with what was read and done. It is the first part of
// a trace of requests, so fields may be added to these objects, and none is taken away.
import Type, { type Static } from 'typebox';
import { PHASES } from '../expression/phases.ts';
import { ChallengeType } from './challenge.ts';
import { Id, Nullable, OneOf } from './common.ts';

/** Bytes of a value that are shown. */
export const MAX_SHOWN_BYTES = 512;
/** Values that are shown of all rules together. */
export const MAX_READS = 2000;

/** Bytes of a request, which need not be text. */
export const ShownValue = Type.Object({
  text: {
    ...Nullable(Type.String()),
    description: `The value, at most its first ${MAX_SHOWN_BYTES} bytes; null unless it is UTF-8 without control characters.`,
  },
  base64: { ...Nullable(Type.String()), description: 'The same bytes in base64 if they are not text; else null.' },
  bytes: Type.Integer({ minimum: 0, description: 'Full length in bytes.' }),
});
export type ShownValue = Static<typeof ShownValue>;

export const READ_KINDS = ['field', 'function', 'condition'] as const;

const Read = Type.Object({
  part: Type.String({
    description:
      'Path of the evaluated expression in the rule, for example /expression, /action/target or ' +
      '/action/setQuery/0/expression.',
  }),
  at: Type.Integer({
    minimum: 0,
    description: 'Offset of the first character in that expression, in UTF-16 code units.',
  }),
  end: Type.Integer({ minimum: 0, description: 'Offset after the last character.' }),
  kind: OneOf(READ_KINDS),
  name: Type.String({ description: 'Field as written, function or operator.' }),
  type: OneOf(['string', 'number', 'boolean', 'ip']),
  value: {
    ...ShownValue,
    description: 'Numbers are decimal, booleans true or false; a missing address is empty.',
  },
});
export type Read = Static<typeof Read>;

/** What a rule did; `name` says to what, `value` what it is now. */
export const EFFECTS = [
  'path',
  'query',
  'header_set',
  'header_added',
  'header_removed',
  'header_left',
  'override',
  'origin',
  'codings',
  'counted',
  'logged',
  'allowed',
  'exemption_left',
  'challenged',
  'blocked',
  'redirected',
] as const;

const Effect = Type.Object({
  kind: OneOf(EFFECTS, {
    description:
      'header_left: the header stays unchanged, because its value could not be computed or sent, rules ' +
      'have used up 32 KiB of headers, or the node created the response and keeps it. counted: the request ' +
      'counts in a rate limit; counters are not simulated. exemption_left: the rule reads the path and exempts ' +
      'nothing, because the request spells the path in a way that origins may read differently.',
  }),
  name: Type.String({ description: 'Name of the header or setting; empty if there is only one.' }),
  value: { ...Nullable(ShownValue), description: 'New value; null: removed or without a value.' },
});
export type Effect = Static<typeof Effect>;

export const RULE_RESULTS = ['matched', 'not_matched', 'failed', 'unknown', 'skipped'] as const;
export const SKIPPED_WHY = ['disabled', 'broken', 'allowed', 'ended', 'no_response', 'too_costly'] as const;
export const RUN_FAILURES = ['result_too_long', 'pattern_budget', 'unusable_result'] as const;

const identity = {
  id: { ...Id, description: 'ID of the rule; generated if none was given.' },
  name: Type.String(),
  position: Type.Integer({ minimum: 0, description: 'Position in its list, from 0.' }),
  platform: Type.Boolean({ description: 'Whether the rule is a platform rule.' }),
};

const RuleRun = Type.Object({
  ...identity,
  result: OneOf(RULE_RESULTS, {
    description:
      'failed: the evaluation failed. Request phases then return 503; response phases skip the rule. ' +
      'unknown: the rule reads a field that the request omits, and counts as not matched.',
  }),
  skipped: {
    ...Nullable(OneOf(SKIPPED_WHY)),
    description:
      'Why the rule was skipped; null: it was evaluated. broken: the saved rule is no longer valid, and ' +
      'nodes keep its earlier form. allowed: a rule of the same list allowed the request. ended: an ' +
      'earlier rule ended the request. no_response: no response was given, or the node created it and the ' +
      'rule is a compression rule. too_costly: earlier rules used up the cost limit.',
  },
  failure: {
    ...Nullable(OneOf(RUN_FAILURES)),
    description:
      'Why the evaluation failed. result_too_long: a function result exceeds 8192 bytes. pattern_budget: a ' +
      'pattern took too many steps. unusable_result: the computed target is not valid.',
  },
  unknown: { ...Nullable(Type.String()), description: 'Field that the request must include for a decision.' },
  reads: Type.Array(Read, {
    description: 'Evaluated fields, functions and conditions, inner ones first.',
  }),
  readsLeftOut: Type.Integer({
    minimum: 0,
    description: `Number of values that are omitted, because all rules together show at most ${MAX_READS}.`,
  }),
  effects: Type.Array(Effect),
});
export type RuleRun = Static<typeof RuleRun>;

const HeaderState = Type.Object({
  name: Type.String(),
  lines: Type.Array(ShownValue, { description: 'Header lines; empty: removed.' }),
});

const After = Type.Object({
  path: { ...ShownValue, description: 'Path, decoded and canonical, as rules see it.' },
  query: ShownValue,
  target: { ...ShownValue, description: 'Path and query as sent to the origin.' },
  requestHeaders: Type.Array(HeaderState, { description: 'Request headers that rules have changed so far.' }),
  overrides: Type.Array(Type.Object({ name: Type.String(), value: ShownValue }), {
    description: 'Settings that rules have overridden so far, by name.',
  }),
  originGroup: Type.String({ description: 'Origin group that rules chose; empty: the default group.' }),
  hostHeader: Type.String(),
  sni: Type.String(),
  port: Type.Integer({ minimum: 0, maximum: 65_535 }),
  responseHeaders: Type.Array(HeaderState, { description: 'Response headers that rules have changed so far.' }),
  codings: {
    ...Nullable(Type.Array(Type.String())),
    description: 'Codings that a compression rule allows, in order; null: no compression rule matched.',
  },
});
export type After = Static<typeof After>;

const PhaseRun = Type.Object({
  phase: OneOf(PHASES),
  rules: Type.Array(RuleRun, { description: 'In execution order: platform rules first.' }),
  after: { ...After, description: 'Request, and response if there is one, after this phase.' },
});
export type PhaseRun = Static<typeof PhaseRun>;

export const OUTCOMES_OF_RUN = [
  'origin',
  'redirect',
  'block',
  'challenge',
  'https_forced',
  'body_too_large',
  'path_ambiguous',
  'failure',
  'listed',
] as const;

const RuleOfRun = Type.Object(identity);
export type RuleOfRun = Static<typeof RuleOfRun>;

const Outcome = Type.Object({
  kind: OneOf(OUTCOMES_OF_RUN, {
    description:
      'origin: the request goes to the cache and the origins. redirect, block: by a rule or a bulk ' +
      'redirect. challenge: the client has no sufficient pass. https_forced: a rule or the site redirects ' +
      'to HTTPS, or returns 503 if the site has no HTTPS for the host. body_too_large: 413. path_ambiguous: ' +
      '400, the site normalizes paths and origins could resolve this one differently. failure: 503, ' +
      'a rule could not be evaluated. listed: 403, the address is on a block list.',
  }),
  status: {
    ...Nullable(Type.Integer()),
    description: 'Status of the response that the node creates; null with `origin`.',
  },
  error: { ...Nullable(Type.String()), description: 'Code in X-Svc-Error, for example policy-denied; null: none.' },
  location: { ...Nullable(ShownValue), description: 'Redirect target; null: none.' },
  rule: { ...Nullable(RuleOfRun), description: 'Rule that decided; null: none.' },
  bulkRedirect: { ...Nullable(Type.String()), description: 'Source of the bulk redirect that decided; null: none.' },
  list: { ...Nullable(Type.String()), description: 'Name of the block list that decided; null: none.' },
  challenge: {
    ...Nullable(ChallengeType),
    description: 'Challenge that the client must pass; null with every other kind.',
  },
  exempt: Type.Boolean({
    description:
      'Whether an allow rule or an allow list exempts the request from challenges of Under Attack and of load.',
  }),
  limits: Type.Array(
    Type.Object({
      rule: RuleOfRun,
      key: Type.String({ description: 'Field whose values are counted separately.' }),
      value: ShownValue,
      limit: Type.Integer(),
      windowSeconds: Type.Integer(),
      statusCode: Type.Integer({ description: 'Status returned when the limit is reached.' }),
    }),
    { description: 'Rate limits that count this request. Earlier requests are not simulated.' },
  ),
  originGroup: {
    ...Nullable(Type.String()),
    description: 'Origin group that receives the request; empty: the default group; null: none.',
  },
});
export type Outcome = Static<typeof Outcome>;

export const RuleTrace = Type.Object({
  outcome: Outcome,
  phases: Type.Array(PhaseRun, { description: 'All phases, in the order in which a request passes them.' }),
  unknown: Type.Array(Type.String(), {
    description:
      'Fields that rules read and the request omits, for example ip.geoip.country. Include them for a ' +
      'certain outcome.',
  }),
  complete: Type.Boolean({
    description:
      'Whether all rules were evaluated. If false, the cost limit was reached, and the outcome covers only ' +
      'the evaluated rules.',
  }),
});
export type RuleTrace = Static<typeof RuleTrace>;
