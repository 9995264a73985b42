// `npm test`: everything CI runs. The last line is the sum of all suites; a failed or a skipped test makes the exit code 1.
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { buildCaddy, caddySources } from './lib/caddy.ts';
import { preflight } from './lib/preflight.ts';
import { processorSeconds } from './lib/process-table.ts';
import { Refusal, report, say } from './lib/progress.ts';
import { cacheDir } from './lib/root.ts';
import { installShutdown } from './lib/shutdown.ts';
import { ensureQuickBrowser, ensureTestPrograms } from './lib/test-programs.ts';
import { AVA_SUITES, avaJobs, suiteOf, testFiles } from './lib/test-run/ava-jobs.ts';
import { candidates, changedFiles, changedPackages, fitting, seesChange } from './lib/test-run/changed.ts';
import { checkJobs } from './lib/test-run/check-jobs.ts';
import { costOf, keepCosts } from './lib/test-run/costs.ts';
import { goJob, goJobs, raceJobs } from './lib/test-run/go-jobs.ts';
import { readImports } from './lib/test-run/import-graph.ts';
import { EVERY_TIME, type Job, type Result, SUITES, type Suite } from './lib/test-run/job.ts';
import { longJobs } from './lib/test-run/long-jobs.ts';
import { endMeasured } from './lib/test-run/measured.ts';
import { runJobs } from './lib/test-run/run-jobs.ts';
import { jobsOfShard, parseShard } from './lib/test-run/shards.ts';
import { keepTimes, timesTable } from './lib/test-run/times.ts';
import { startTestStores, type TestStores } from './lib/test-stores.ts';
import { buildWebConsole } from './lib/web-console.ts';

const HELP = `Usage: npm test [-- [--only SUITE]... [FILTER]...]

Runs the suites ${EVERY_TIME.join(', ')} and prints the sum. FILTER narrows the suites of test files to those whose path
contains it. Files run in parallel, packed by their measured costs (test/costs.json). The output of each is in .cache/test-logs.
Up to two files of integration and e2e that fail in parallel run once more alone; a file that then passes is UNSTEADY.
Programs that tests build from third-party sources are kept for all clones, in $XDG_CACHE_HOME/edge-delivery-console
(~/.cache/edge-delivery-console).

  --only SUITE   runs this suite only; may be given several times. Two suites run only when named: race is Go's race
                 detector over everything (go runs it over packages with shared state), and long (npm run test:long) is
                 race with the long forms of tests: every test of the WAF's rule set, a database that stalls for a
                 minute, 20 kills while requests are counted, 100,000 expressions, 30 examples of each API operation,
                 a kill of each process and at each step, every page in every form, every end of the demo, and the
                 interoperability cases of gRPC through an edge
  --shard I/N    runs part I of N of the jobs that were chosen: the same parts on every machine, packed by test/costs.json
  --changed      runs the tests that the difference to main can break, nearest first, for about two minutes: steps of the
                 check, files that import it, are named after it or call it, and packages of Go; lists the omitted files
  --times        prints at the end the time of each file, and its waiting time (always in .cache/test-logs/times.log)
  --keep-costs   writes the seconds and core-seconds of each job that passed to test/costs.json: run it on an idle
                 machine
  --steady       UNSTEADY counts as failed for faults, bans, publishing and signing in`;

const { values, positionals: only } = parseArgs({
  options: {
    only: { type: 'string', multiple: true },
    shard: { type: 'string' },
    changed: { type: 'boolean', default: false },
    times: { type: 'boolean', default: false },
    'keep-costs': { type: 'boolean', default: false },
    steady: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
  allowPositionals: true,
});

/** What a developer has exported must not reach a test. */
const OF_THE_DEVELOPER = [
  'DATABASE_URL',
  'DATABASE_DIRECT_URL',
  'REDIS_URL',
  'NODE_ENV',
  'ROLE',
  'SERVICES',
  'PORT',
  'HOST',
];

let stores: TestStores | undefined;
let caddy: string | undefined;

/** Environment of a test file's process; call it once everything stands. */
function testEnvironment(): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = { ...process.env };
  for (const name of OF_THE_DEVELOPER) delete env[name];
  if (stores) {
    env.TEST_DATABASE_URL = stores.postgres.url;
    env.TEST_REDIS_URL = stores.redis.url;
  }
  if (caddy) env.TEST_CADDY = caddy;
  return env;
}

function jobsOf(suite: Suite): Job[] {
  if (suite === 'check') return checkJobs();
  if (suite === 'go') return goJobs();
  if (suite === 'race') return raceJobs();
  if (suite === 'long') return longJobs(testEnvironment);
  return avaJobs(suite, testEnvironment, (file) => only.length === 0 || only.some((part) => file.includes(part)));
}

function chosen(): Job[] {
  const wanted: readonly string[] = values.only ?? EVERY_TIME;
  const unknown = wanted.find((name) => !SUITES.includes(name as Suite));
  if (unknown) throw new Refusal(`the suite ${unknown} does not exist\n\n${HELP}`);
  const suites = SUITES.filter(
    (suite) => wanted.includes(suite) && (only.length === 0 || !['check', 'go', 'race', 'long'].includes(suite)),
  );
  const jobs = suites.flatMap(jobsOf);
  return values.shard === undefined ? jobs : jobsOfShard(jobs, parseShard(values.shard));
}

/** Seconds of all cores that test files may take in the loop of a change; the steps of the check come on top. */
const LOOP_SECONDS = 75;

/** Jobs of what the change can break. */
async function jobsOfChange(): Promise<Job[]> {
  const changed = await changedFiles();
  if (changed.length === 0) throw new Refusal('nothing differs from main, so nothing runs');
  const tests = AVA_SUITES.flatMap(testFiles);
  const found = candidates(changed, readImports(), tests);
  const cost = (file: string) => (suiteOf(file) === 'unit' ? { seconds: 1, cores: 1 } : costOf(suiteOf(file), file));
  const { taken, left } = fitting(found, ({ file }) => cost(file), LOOP_SECONDS, availableParallelism());
  const chosen = new Set(taken.map(({ file }) => file));
  say(`${changed.length} files differ from main; ${chosen.size} test files run.`);
  if (left.length > 0)
    say(`Left to \`npm test\`: ${left.map(({ file }) => file.replace(/^test\/|\.test\.ts$/g, '')).join(', ')}`);
  const packages = await changedPackages(changed);
  return [
    ...checkJobs((step) => seesChange(step, changed)),
    ...(packages.length > 0 ? [goJob('go', 'go changed', caddySources, packages)] : []),
    ...AVA_SUITES.flatMap((suite) => avaJobs(suite, testEnvironment, (file) => chosen.has(file))),
  ];
}

/** Builds and starts what the jobs share. */
async function prepare(jobs: readonly Job[]): Promise<void> {
  const has = (...suites: Suite[]) => jobs.some(({ suite }) => suites.includes(suite));
  await preflight({
    dataDir: cacheDir,
    redis: has('integration', 'e2e', 'long'),
    caddy: has('go', 'race', 'integration', 'e2e', 'long', 'check'),
  });
  if (has('go', 'race', 'unit', 'integration', 'e2e', 'long')) await ensureTestPrograms();
  if (has('e2e')) await ensureQuickBrowser();
  if (has('unit', 'e2e')) await buildWebConsole();
  if (!has('integration', 'e2e', 'long')) return;
  caddy = await buildCaddy();
  stores = await startTestStores();
}

function storesSeconds(): number | undefined {
  if (!stores) return undefined;
  const { postgres, redis } = stores;
  return [postgres, redis].reduce((sum, { child }) => sum + (processorSeconds(child.pid) ?? 0), 0);
}

async function stop(): Promise<void> {
  endMeasured();
  await stores?.stop();
}

async function main(): Promise<void> {
  const jobs = values.changed ? await jobsOfChange() : chosen();
  await prepare(jobs);
  const results = new Map<string, Result>();
  const total = await runJobs(jobs, { steady: values.steady }, ({ name }, result) => void results.set(name, result));
  const table = timesTable(results, storesSeconds());
  keepTimes(table);
  if (values.times) for (const line of table) say(line);
  if (values['keep-costs']) keepCosts(results);
  await stop();
  process.exitCode = total.failed > 0 || total.skipped > 0 ? 1 : 0;
  console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
  process.exit();
}

if (values.help) {
  say(HELP);
} else {
  installShutdown(stop, { signalIsSuccess: false });
  try {
    await main();
  } catch (error) {
    await stop();
    report(error);
    console.log('0 passed, 1 failed, 0 skipped');
    process.exit(1);
  }
}
