// Jobs of `npm run test:long`: the long forms of tests whose short forms `npm test` has, the interoperability cases of
// gRPC, and Go's race detector over everything.
import { join } from 'node:path';
import { caddySources, GO_BUILD_FLAGS } from '../caddy.ts';
import { root } from '../root.ts';
import { fileJob } from './ava-jobs.ts';
import { goJob, raceJobs } from './go-jobs.ts';
import type { Job } from './job.ts';

/** Test files with the environment variables that make them long. */
const LONG_FORMS: readonly { file: string; env: Readonly<Record<string, string>> }[] = [
  { file: 'test/integration/stalled-database.test.ts', env: { STALL_SECONDS: '60' } },
  { file: 'test/integration/usage-kills.test.ts', env: { COUNT_KILLS: '20' } },
  { file: 'test/integration/fair-nodes.test.ts', env: { HONEST_NODES: '100', WORST_SECONDS: '30' } },
  { file: 'test/integration/expression-pairs.test.ts', env: { PAIRS: '100000' } },
  { file: 'test/e2e/schemathesis.test.ts', env: { EXAMPLES: '30' } },
  // All of what the short forms have one of (test/helpers/long-form.ts).
  { file: 'test/e2e/console-look.test.ts', env: { TEST_LONG: '1' } },
  { file: 'test/e2e/console-forms.test.ts', env: { TEST_LONG: '1' } },
  { file: 'test/e2e/console-network.test.ts', env: { TEST_LONG: '1' } },
  { file: 'test/e2e/demo.test.ts', env: { TEST_LONG: '1' } },
  { file: 'test/e2e/faults.test.ts', env: { TEST_LONG: '1' } },
  { file: 'test/integration/backup.test.ts', env: { TEST_LONG: '1' } },
];

/** A module of its own: the edge does not depend on the gRPC server and client of the cases. */
const interopModule = join(root, 'test', 'grpc-interop');

/** All jobs of the suite; those of the race detector come first, because nothing runs longer. */
export function longJobs(env: () => NodeJS.ProcessEnv): Job[] {
  const histories = ['-vet=off', ...GO_BUILD_FLAGS, '-run', 'TestNothingOlderThanItsPurgeIsServed', './edge'];
  const rules = ['-vet=off', ...GO_BUILD_FLAGS, '-run', 'TestRegressionTestsOfTheRuleSet', './...'];
  return [
    ...raceJobs().map((job) => ({ ...job, suite: 'long' as const })),
    goJob('long', 'gRPC interoperability', interopModule, ['-vet=off', './...']),
    goJob('long', 'long rule set', caddySources, rules, { WAF_ALL_RULES: '1' }),
    goJob('long', 'long histories of the cache', caddySources, histories, { CACHE_HISTORY_SECONDS: '120' }),
    ...LONG_FORMS.map(({ file, env: more }) =>
      fileJob('long', file, () => ({ ...env(), ...more }), `long ${file.replace(/^test\/|\.test\.ts$/g, '')}`),
    ),
  ];
}
