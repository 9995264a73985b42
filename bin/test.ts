// `npm test`: everything CI runs. The last line is the sum of all suites; a failed or a skipped test makes the exit code 1.
import { parseArgs } from 'node:util';
import { buildCaddy } from './lib/caddy.ts';
import { preflight } from './lib/preflight.ts';
import { Refusal, report, say } from './lib/progress.ts';
import { cacheDir } from './lib/root.ts';
import { runCheck, type Tally } from './lib/run-check.ts';
import { installShutdown } from './lib/shutdown.ts';
import { runAva, runGo, runRace } from './lib/suites.ts';
import { ensureTestPrograms } from './lib/test-programs.ts';
import { startTestStores, type TestStores } from './lib/test-stores.ts';
import { buildWebConsole } from './lib/web-console.ts';

const EVERY_TIME = ['check', 'go', 'unit', 'repo', 'integration', 'e2e'] as const;
const SUITES = [...EVERY_TIME, 'race'] as const;
type Suite = (typeof SUITES)[number];

const HELP = `Usage: npm test [-- --only SUITE]... [FILTER]...

Runs the suites ${EVERY_TIME.join(', ')} and prints the sum. FILTER narrows ava's suites to files whose path contains it.
The full output of each suite is in .cache/test-logs. Up to three files of integration and e2e that fail beside others
are run once more by themselves; what then passes is named as UNSTEADY.

  --only SUITE   runs this suite only; may be given several times. race, which never runs by itself, is Go's race detector
                 over everything; go runs it over the packages with shared state`;

const { values, positionals: only } = parseArgs({
  options: { only: { type: 'string', multiple: true }, help: { type: 'boolean', short: 'h', default: false } },
  allowPositionals: true,
});

let stores: TestStores | undefined;

async function runSuite(suite: Suite): Promise<Tally> {
  if (suite === 'check') return runCheck();
  if (suite === 'go') return runGo();
  if (suite === 'race') return runRace();
  const env: NodeJS.ProcessEnv = { ...process.env };
  // What a developer has exported must not reach a test.
  for (const name of [
    'DATABASE_URL',
    'DATABASE_DIRECT_URL',
    'REDIS_URL',
    'NODE_ENV',
    'ROLE',
    'SERVICES',
    'PORT',
    'HOST',
  ])
    delete env[name];
  if (suite === 'integration' || suite === 'e2e') {
    stores ??= await startTestStores();
    env.TEST_DATABASE_URL = stores.postgres.url;
    env.TEST_REDIS_URL = stores.redis.url;
    env.TEST_CADDY = await buildCaddy();
  }
  // End-to-end stories start whole installations: one after the other.
  if (suite === 'e2e') return runAva(suite, env, { concurrency: 1, only, again: true });
  return runAva(suite, env, { only, again: suite === 'integration' });
}

function chosen(): Suite[] {
  const wanted: readonly string[] = values.only ?? EVERY_TIME;
  const unknown = wanted.find((name) => !SUITES.includes(name as Suite));
  if (unknown) throw new Refusal(`there is no suite ${unknown}\n\n${HELP}`);
  return SUITES.filter(
    (suite) => wanted.includes(suite) && (only.length === 0 || !['check', 'go', 'race'].includes(suite)),
  );
}

async function main(): Promise<void> {
  const suites = chosen();
  const total: Tally = { passed: 0, failed: 0, skipped: 0 };
  const needsEdge = suites.some((suite) => ['go', 'race', 'integration', 'e2e', 'check'].includes(suite));
  await preflight({
    dataDir: cacheDir,
    redis: suites.includes('integration') || suites.includes('e2e'),
    caddy: needsEdge,
  });
  if (suites.some((suite) => suite !== 'check' && suite !== 'repo')) await ensureTestPrograms();
  if (suites.some((suite) => suite === 'unit' || suite === 'e2e')) await buildWebConsole();
  for (const suite of suites) {
    say(`${suite}:`);
    const tally = await runSuite(suite);
    total.passed += tally.passed;
    total.failed += tally.failed;
    total.skipped += tally.skipped;
  }
  await stores?.stop();
  process.exitCode = total.failed > 0 || total.skipped > 0 ? 1 : 0;
  console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
  process.exit();
}

if (values.help) {
  say(HELP);
} else {
  installShutdown(async () => stores?.stop(), { signalIsSuccess: false });
  try {
    await main();
  } catch (error) {
    await stores?.stop();
    report(error);
    console.log('0 passed, 1 failed, 0 skipped');
    process.exit(1);
  }
}
