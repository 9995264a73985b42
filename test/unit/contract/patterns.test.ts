// What an input may look like is asked of texts as long as a body: whatever they hold, a pattern looks at each character a
// bounded number of times.
import { runInNewContext } from 'node:vm';
import test from 'ava';
import { AUTH_ENDPOINTS } from '../../../contract/auth-endpoints.ts';
import { PROCEDURES, STREAMS } from '../../../contract/index.ts';

const BODY_CHARS = 1024 * 1024;
/** Far beyond what a slow machine needs for all of one text; a pattern that goes back over it needs days. */
const HANG_MS = 30_000;

function* patternsIn(schema: unknown): Generator<string> {
  if (typeof schema !== 'object' || schema === null) return;
  for (const [key, value] of Object.entries(schema)) {
    if (key === 'pattern' && typeof value === 'string') yield value;
    else yield* patternsIn(value);
  }
}

const inputs = [...PROCEDURES.values(), ...STREAMS.values(), ...Object.values(AUTH_ENDPOINTS)].map(
  ({ input }) => input,
);
const patterns = [...new Set(inputs.flatMap((input) => [...patternsIn(input)]))];

// Runs of what patterns are about, ended by what none of them takes.
const hostile = ['a', ' ', '0', '-', '.', '=', 'é', 'a ', ' a', 'a-', 'a.'].flatMap((run) =>
  ['\u0001', '\n', '=', ' '].map((end) => run.repeat(BODY_CHARS / run.length) + end),
);

test('inputs have patterns', (t) => {
  t.true(patterns.length >= 10);
});

for (const pattern of patterns) {
  test(`a text as long as a body is soon judged by ${pattern}`, (t) => {
    const sandbox = { judge: new RegExp(pattern, 'u'), hostile };
    t.notThrows(() => runInNewContext('hostile.map((text) => judge.test(text))', sandbox, { timeout: HANG_MS }));
  });
}
