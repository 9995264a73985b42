import test from 'ava';
import { TapReader } from '../../../../bin/lib/tap.ts';

function read(text: string, size = text.length) {
  const failures: string[] = [];
  const reader = new TapReader((failure) => failures.push(failure));
  for (let at = 0; at < text.length; at += size) reader.write(text.slice(at, at + size));
  reader.end();
  return { ...reader.result, failures };
}

const OUTPUT = `TAP version 13
ok 1 - a › passes
not ok 2 - a › fails
  ---
    name: AssertionError
  ...
ok 3 - a › is skipped # SKIP
not ok 4 - a › is planned # TODO
# a note
ok 5 - a › has # in its title

1..5`;

test('passed, failed and skipped tests are counted; a planned test counts as skipped', (t) => {
  const { passed, failed, skipped } = read(OUTPUT);
  t.deepEqual({ passed, failed, skipped }, { passed: 2, failed: 1, skipped: 2 });
});

test('a failure comes with its diagnostics', (t) => {
  t.deepEqual(read(OUTPUT).failures, ['not ok 2 - a › fails\n  ---\n    name: AssertionError\n  ...']);
});

test('results do not depend on how the output is cut', (t) => {
  t.deepEqual(read(OUTPUT, 1), read(OUTPUT));
});

test('a chunk says whether a test ends in it', (t) => {
  const reader = new TapReader(() => undefined);
  t.deepEqual(
    ['TAP version 13\n', 'ok 1 - a\nok', ' 2 - b', '\n', '# a note\n'].map((chunk) => reader.write(chunk)),
    [false, true, false, true, false],
  );
});
