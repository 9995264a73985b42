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
    description: `The value, at most its first ${MAX_SHOWN_BYTES} bytes; null when they are not UTF-8 without control characters.`,
  },
  base64: { ...Nullable(Type.String()), description: 'The same bytes in base64 when they are no text; else null.' },
  bytes: Type.Integer({ minimum: 0, description: 'Length of all of it in bytes.' }),
});
export type ShownValue = Static<typeof ShownValue>;

export const READ_KINDS = ['field', 'function', 'condition'] as const;

const Read = Type.Object({
  part: Type.String({
    description:
      'Path in the rule of the text that was evaluated: /expression, /action/target, /action/setQuery/0/expression, …',
  }),
  at: Type.Integer({ minimum: 0, description: 'Offset in that text of the first character, in UTF-16 code units.' }),
  end: Type.Integer({ minimum: 0, description: 'Offset after the last one.' }),
  kind: OneOf(READ_KINDS),
  name: Type.String({ description: 'The field as it is written, the function, or the operator.' }),
  type: OneOf(['string', 'number', 'boolean', 'ip']),
  value: {
    ...ShownValue,
    description: 'Numbers are decimal, booleans true or false; an address that there is none of is empty.',
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
  'challenged',
  'blocked',
  'redirected',
] as const;

const Effect = Type.Object({
  kind: OneOf(EFFECTS, {
    description:
      'header_left: the header stays as it is, because its value could not be computed or sent, rules have put 32 KiB ' +
      'into the header, or the node made the answer and keeps it; counted: by a rate limit, whose counters are not ' +
      'simulated.',
  }),
  name: Type.String({ description: 'Of the header or setting; empty where there is only one.' }),
  value: { ...Nullable(ShownValue), description: 'What it is now; null when it is gone or has no value.' },
});
export type Effect = Static<typeof Effect>;

export const RULE_RESULTS = ['matched', 'not_matched', 'failed', 'unknown', 'skipped'] as const;
export const SKIPPED_WHY = ['disabled', 'broken', 'allowed', 'ended', 'no_response', 'too_costly'] as const;
export const RUN_FAILURES = ['result_too_long', 'pattern_budget', 'unusable_result'] as const;

const identity = {
  id: { ...Id, description: 'Id of the rule; made up for one that was given without.' },
  name: Type.String(),
  position: Type.Integer({ minimum: 0, description: 'Place in its list, from 0.' }),
  platform: Type.Boolean({ description: 'Whether it is a platform rule.' }),
};

const RuleRun = Type.Object({
  ...identity,
  result: OneOf(RULE_RESULTS, {
    description:
      'failed: the evaluation failed, which answers 503 in the phases of a request and skips the rule in those of a ' +
      'response; unknown: it reads what the request does not say, and is taken for one that did not match.',
  }),
  skipped: {
    ...Nullable(OneOf(SKIPPED_WHY)),
    description:
      'broken: it was saved and the language does not take it any more, nodes have the form it had; allowed: a rule of ' +
      'the same list allowed the request; ended: an earlier rule answered it; no_response: no response was given, or ' +
      'the node made it and the rule is about compression; too_costly: the rules before have used up what one try may ' +
      'cost. Null when it was run.',
  },
  failure: {
    ...Nullable(OneOf(RUN_FAILURES)),
    description:
      'Why it failed: result_too_long, a function made more than 8192 bytes; pattern_budget, a pattern took too many ' +
      'steps; unusable_result, a target that leads nowhere.',
  },
  unknown: { ...Nullable(Type.String()), description: 'The field that the request would have to say.' },
  reads: Type.Array(Read, {
    description: 'Fields, functions and conditions as they were evaluated, inner ones first.',
  }),
  readsLeftOut: Type.Integer({ minimum: 0, description: `Values that are not shown, beyond ${MAX_READS} in all.` }),
  effects: Type.Array(Effect),
});
export type RuleRun = Static<typeof RuleRun>;

const HeaderState = Type.Object({
  name: Type.String(),
  lines: Type.Array(ShownValue, { description: 'Its lines; empty when it is gone.' }),
});

const After = Type.Object({
  path: { ...ShownValue, description: 'Decoded and canonical, as rules read it.' },
  query: ShownValue,
  target: { ...ShownValue, description: 'Path and query as the origin gets them.' },
  requestHeaders: Type.Array(HeaderState, { description: 'Headers that rules have changed so far.' }),
  overrides: Type.Array(Type.Object({ name: Type.String(), value: ShownValue }), {
    description: 'Settings that rules have overridden so far, by name.',
  }),
  originGroup: Type.String({ description: 'Group that rules chose; empty for the default group.' }),
  hostHeader: Type.String(),
  sni: Type.String(),
  port: Type.Integer({ minimum: 0, maximum: 65_535 }),
  responseHeaders: Type.Array(HeaderState, { description: 'Headers of the response that rules have changed so far.' }),
  codings: {
    ...Nullable(Type.Array(Type.String())),
    description: 'Codings that a compression rule leaves, in its order; null when none matched.',
  },
});
export type After = Static<typeof After>;

const PhaseRun = Type.Object({
  phase: OneOf(PHASES),
  rules: Type.Array(RuleRun, { description: 'In the order of execution: platform rules first.' }),
  after: { ...After, description: 'The request, and the response if there is one, after this phase.' },
});
export type PhaseRun = Static<typeof PhaseRun>;

export const OUTCOMES_OF_RUN = [
  'origin',
  'redirect',
  'block',
  'challenge',
  'https_forced',
  'body_too_large',
  'failure',
  'listed',
] as const;

const RuleOfRun = Type.Object(identity);
export type RuleOfRun = Static<typeof RuleOfRun>;

const Outcome = Type.Object({
  kind: OneOf(OUTCOMES_OF_RUN, {
    description:
      'origin: it goes to the cache and the origins; redirect, block: by the rule, or the bulk redirect; challenge: the ' +
      'visitor has no sufficient pass; https_forced: a rule or the site sends it to HTTPS, 503 where the site has none ' +
      'for the host; body_too_large: ' +
      '413; failure: 503, the rule could not be evaluated; listed: 403, the address is on a block list.',
  }),
  status: { ...Nullable(Type.Integer()), description: "Of the node's own answer; null with origin." },
  error: { ...Nullable(Type.String()), description: 'Code in X-Svc-Error, for example policy-denied; null without.' },
  location: { ...Nullable(ShownValue), description: 'Where the visitor is sent; null where to nowhere.' },
  rule: { ...Nullable(RuleOfRun), description: 'The rule that decided; null when none did.' },
  bulkRedirect: { ...Nullable(Type.String()), description: 'Source of the bulk redirect that decided; null without.' },
  list: { ...Nullable(Type.String()), description: 'Name of the block list that decided; null without.' },
  challenge: { ...Nullable(ChallengeType), description: 'What the visitor has to pass; null with every other kind.' },
  exempt: Type.Boolean({
    description: 'Whether an allow rule or an allow list spares it the challenges of Under Attack and of load.',
  }),
  limits: Type.Array(
    Type.Object({
      rule: RuleOfRun,
      key: Type.String({ description: 'The field whose values are counted apart.' }),
      value: ShownValue,
      limit: Type.Integer(),
      windowSeconds: Type.Integer(),
      statusCode: Type.Integer({ description: 'Answered once the limit is reached.' }),
    }),
    { description: 'Rate limits that count this request. How many requests there were before is not simulated.' },
  ),
  originGroup: {
    ...Nullable(Type.String()),
    description: 'Group of origins that is asked, empty for the default group; null when none is.',
  },
});
export type Outcome = Static<typeof Outcome>;

export const RuleTrace = Type.Object({
  outcome: Outcome,
  phases: Type.Array(PhaseRun, { description: 'All of them, in the order in which a request meets them.' }),
  unknown: Type.Array(Type.String(), {
    description:
      'Fields that were read and that the request does not say, for example ip.geoip.country: say them to be certain of ' +
      'the outcome.',
  }),
  complete: Type.Boolean({
    description:
      'Whether all rules were run; else they cost more than one try may, and the outcome is that of those run.',
  }),
});
export type RuleTrace = Static<typeof RuleTrace>;
