// All of the rule set's own tests for requests, over the whole edge: `go test` runs a sample of them each time.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { caddySources, GO_TEST_TAGS } from '../bin/lib/caddy.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'the tests of the rule set of the WAF over the edge: matched, refused before the rules, missing';

const TEST = 'TestRegressionTestsOfTheRuleSetForTheWAF';
const MOST_MISSING = 16;

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  log(quick ? 'the sample of go test' : 'all tests, which takes a minute');
  // The test fails where too many are missing; what it says is wanted then, too.
  const output = await promisify(execFile)(
    'go',
    ['test', ...GO_TEST_TAGS, './edge', '-count=1', '-v', '-run', `^${TEST}$`],
    { cwd: caddySources, env: { ...process.env, ...(!quick && { WAF_ALL_RULES: '1' }) }, timeout: 900_000 },
  ).then(
    ({ stdout }) => stdout,
    (error: Error & { stdout?: string }) => error.stdout ?? '',
  );
  const found =
    /(\d+) tests: (\d+) matched, refused before the rules: map\[(.*?)\], missing: ?(.*?)\n(?= *---| {4}\S)/s.exec(
      output,
    );
  if (!found) throw new Error(`no counts in:\n${output.slice(-2000)}`);
  const [tests, matched] = [Number(found[1]), Number(found[2])];
  const missing = found[4]!.split('\n').flatMap((line) => line.trim() || []);
  return {
    figures: { tests, matched, refused: tests - matched - missing.length, missing: missing.length },
    aims: [
      { aim: `at most ${MOST_MISSING} of all tests are missing`, reached: missing.length <= MOST_MISSING },
      { aim: 'the test passes', reached: output.includes(`--- PASS: ${TEST}`) },
    ],
    notes: [`refused before the rules: ${found[3]}`, ...missing.map((line) => `missing: ${line}`)],
    programs: { go: ['go', 'version'] },
  };
}
