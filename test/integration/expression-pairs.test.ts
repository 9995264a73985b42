// The edge evaluates expressions as the console does: random pairs of an expression and a request, with what our own
// evaluation makes of them, go to a test of the edge's package. PAIRS=100000 PAIRS_SEED=2 compares more and others.
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import test from 'ava';
import { caddySources, findGo, GO_BUILD_FLAGS, goEnvironment } from '../../bin/lib/caddy.ts';
import { run } from '../../bin/lib/commands.ts';
import { PAIR_LISTS } from '../helpers/expression-pairs.ts';
import { pairRows } from '../helpers/expression-rows.ts';
import { temporaryFolder } from '../helpers/temporary-folder.ts';

const PAIRS = Number(process.env.PAIRS ?? 4000);
const SEED = Number(process.env.PAIRS_SEED ?? 1);
/** Compiling the package anew on a busy machine, and comparing. */
const TIMEOUT_MS = 600_000;

function* lines(): Generator<string> {
  yield `${JSON.stringify({ lists: PAIR_LISTS })}\n`;
  for (const row of pairRows(SEED, PAIRS)) yield `${JSON.stringify(row)}\n`;
}

test('the edge agrees with the console on random expressions and requests', async (t) => {
  t.timeout(2 * TIMEOUT_MS);
  const found = await findGo();
  if (!('go' in found)) {
    t.fail(found.problem);
    return;
  }
  const file = join(temporaryFolder(t), 'pairs');
  await pipeline(Readable.from(lines()), createWriteStream(file));
  const words = [
    'test',
    ...GO_BUILD_FLAGS,
    './expr',
    '-count=1',
    '-v',
    '-run',
    '^TestEveryPairOfTheConsoleHasItsValue$',
  ];
  const result = await run(found.go, words, {
    cwd: caddySources,
    env: { ...goEnvironment(process), SVC_EXPRESSION_PAIRS: file },
    timeout: TIMEOUT_MS,
    maxBuffer: 2 ** 24,
  }).catch((error: { stdout?: string; stderr?: string }) => error);
  t.regex(result.stdout ?? '', new RegExp(`\\b${PAIRS} pairs\\n[^]*^PASS$`, 'm'), result.stderr);
});
