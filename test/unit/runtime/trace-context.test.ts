import test from 'ava';
import { traceId, traceparent } from '../../../runtime/trace-context.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const ABOVE = `00-${TRACE}-00f067aa0ba902b7-01`;

test('a call is in the trace of its caller, with a parent of its own and the flags as they were', (t) => {
  const called = traceparent(ABOVE);
  t.regex(called, new RegExp(`^00-${TRACE}-[0-9a-f]{16}-01$`));
  t.not(called, ABOVE);
  t.is(traceId(called), TRACE);
});

for (const [what, above] of Object.entries({
  'no header': undefined,
  'another text': 'trace',
  'a trace of zeros': `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`,
  'a parent of zeros': `00-${TRACE}-${'0'.repeat(16)}-01`,
  'the version that is none': `ff-${TRACE}-00f067aa0ba902b7-01`,
  'upper case': ABOVE.toUpperCase(),
})) {
  test(`${what} begins a new trace`, (t) => {
    const called = traceparent(above);
    t.regex(called, /^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/);
    t.not(traceId(called), TRACE);
  });
}

test('a later version of the format keeps its trace', (t) => {
  t.is(traceId(traceparent(`cc-${TRACE}-00f067aa0ba902b7-01-later`)), TRACE);
});
