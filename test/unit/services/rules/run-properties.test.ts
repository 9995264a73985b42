// Whatever rules and requests are, a run ends and tells of every rule.
import test from 'ava';
import fc, { type Arbitrary } from 'fast-check';
import { checkCondition, checkValue } from '../../../../contract/expression/expression.ts';
import { PHASES, type Phase, RESPONSE_PHASES } from '../../../../contract/expression/phases.ts';
import { LEVELS } from '../../../../contract/scalars/challenge.ts';
import { ACTION_PHASES } from '../../../../contract/scalars/rule-action.ts';
import { RuleTrace } from '../../../../contract/scalars/rule-trace.ts';
import { validateInput } from '../../../../runtime/validate.ts';
import { conditions, values } from '../../../helpers/expressions.ts';
import { runCase, type ShortRequest, type ShortRule } from '../../../helpers/rule-runs.ts';

const byte = fc.oneof(
  fc.constantFrom('/', '?', '#', '%', '&', '=', '.', '\\', ' ', '\r', '\n', '\0', '\xff', 'a', '2', 'F'),
  fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)),
);
const bytes = fc.string({ unit: byte, maxLength: 40 });
const orNone = <T>(source: Arbitrary<T>) => fc.option(source, { nil: null });
const parameters = fc.uniqueArray(fc.record({ name: fc.constantFrom('a', 'b', 'utm_x'), expression: values }), {
  selector: ({ name }) => name,
  maxLength: 2,
});
const target = { target: values, preserveQuery: fc.boolean(), setQuery: parameters };
const header = { header: fc.constantFrom('x-a', 'location', 'user-agent'), expression: values };

const ACTIONS: Record<keyof typeof ACTION_PHASES, Arbitrary<object>> = {
  block: fc.record({ statusCode: fc.constantFrom(403, 451) }),
  log: fc.constant({}),
  allow: fc.constant({}),
  challenge: fc.record({ type: fc.constantFrom(...LEVELS.slice(1)) }),
  redirect: fc.record(target),
  rewrite: fc.record(target),
  request_header: fc.record(header),
  response_header: fc.record({ ...header, append: fc.boolean() }),
  config: fc.record({ gzip: fc.boolean(), requestBodyLimit: fc.nat(100) }),
  rate_limit: fc.record({
    limit: fc.constant(1),
    windowSeconds: fc.constant(1),
    key: fc.constantFrom('ip.src', 'tls.ja4', 'http.request.headers.x-a'),
  }),
  origin: fc.record({ port: fc.nat(65_535), hostHeader: fc.constantFrom('', 'a.example') }),
  compression: fc.record({ algorithms: fc.constantFrom([], ['br', 'gzip']) }),
};

const rule: Arbitrary<ShortRule> = fc
  .constantFrom(...(Object.keys(ACTIONS) as (keyof typeof ACTION_PHASES)[]))
  .chain((kind) =>
    fc.record({
      enabled: fc.integer({ min: 0, max: 9 }).map((drawn) => drawn > 0),
      phase: fc.constantFrom(...ACTION_PHASES[kind]),
      expression: fc.oneof(fc.constant('true'), conditions),
      action: ACTIONS[kind].map((fields) => ({ kind, ...fields })),
    }),
  )
  .filter(isValid);

function isValid({ phase, expression, action }: ShortRule): boolean {
  const {
    target,
    expression: value,
    setQuery = [],
  } = action as { target?: string; expression?: string; setQuery?: { expression: string }[] };
  const computed = [target, value, ...setQuery.map((each) => each.expression)].filter((each) => each !== undefined);
  return checkCondition(expression, { phase }).valid && computed.every((each) => checkValue(each, { phase }).valid);
}

const request: Arbitrary<ShortRequest> = fc.record({
  method: bytes,
  scheme: fc.constantFrom('http', 'https'),
  uri: bytes.map((rest) => `/${rest}`),
  headers: fc.array(fc.tuple(fc.constantFrom('x-a', 'User-Agent', 'Cookie'), bytes), { maxLength: 4 }),
  address: fc.constantFrom('192.0.2.1', '2001:db8::1', '::ffff:192.0.2.1'),
  id: orNone(bytes),
  ja4: orNone(bytes),
  country: orNone(bytes),
  asNumber: orNone(fc.nat()),
  asName: orNone(bytes),
  passLevel: fc.constantFrom(...LEVELS),
  bodySize: orNone(fc.nat(200)),
});
const response = orNone(
  fc.record({
    status: fc.integer({ min: 100, max: 599 }),
    headers: fc.array(fc.tuple(fc.constantFrom('content-type', 'X-A'), bytes), { maxLength: 3 }),
    cacheStatus: orNone(bytes),
  }),
);

/** One object, so that its validator is made once. */
const SHAPE = { input: RuleTrace };
const order = (phase: Phase) => PHASES.indexOf(phase);

test('a run tells of every rule once, in the order of execution, and in the shape that is documented', (t) => {
  const seen = new Set<string>();
  const input = fc.record({
    platform: fc.array(rule, { maxLength: 4 }),
    rules: fc.array(rule, { maxLength: 6 }),
    request,
    response,
    maxCost: fc.constantFrom(50, 1000, 8_000_000),
  });
  fc.assert(
    fc.property(input, ({ maxCost, ...each }) => {
      const trace = runCase(each, { maxCost, lists: { office: ['192.0.2.0/24'] }, bodyLimit: 100 });
      validateInput(SHAPE, JSON.parse(JSON.stringify(trace)));
      t.deepEqual(
        trace.phases.map(({ phase }) => phase),
        [...PHASES],
      );
      const runs = trace.phases.flatMap(({ phase, rules }) => rules.map((one) => ({ ...one, phase })));
      const sorted = [
        ...each.platform.map((one, at) => ({ one, id: `p${at}` })),
        ...each.rules.map((one, at) => ({ one, id: `s${at}` })),
      ]
        .sort((a, b) => order(a.one.phase) - order(b.one.phase))
        .map(({ id }) => id);
      t.deepEqual(
        runs.map(({ id }) => id),
        sorted,
      );
      const decided = runs.findIndex(({ id }) => id === trace.outcome.rule?.id);
      if (decided >= 0 && !['https_forced', 'body_too_large'].includes(trace.outcome.kind)) {
        const later = runs.slice(decided + 1).filter(({ phase }) => !RESPONSE_PHASES.includes(phase));
        t.true(later.every(({ result }) => result === 'skipped'));
      }
      t.true(runs.every(({ result, skipped }) => (result === 'skipped') === (skipped !== null)));
      for (const { result, skipped } of runs) seen.add(skipped ?? result);
      seen.add(trace.outcome.kind);
    }),
    { numRuns: 300 },
  );
  for (const met of [
    'matched',
    'not_matched',
    'unknown',
    'failed',
    'disabled',
    'allowed',
    'ended',
    'no_response',
    'too_costly',
  ]) {
    t.true(seen.has(met), met);
  }
  for (const outcome of ['origin', 'redirect', 'block', 'challenge', 'failure', 'body_too_large']) {
    t.true(seen.has(outcome), outcome);
  }
});
