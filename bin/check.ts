// `npm run check`: formatting, lint, types, layering, protobuf rules, generated code, Go vet. Needs nothing running.
// `--step NAME` runs this step only.
import { parseArgs } from 'node:util';
import { report, say } from './lib/progress.ts';
import { runCheck } from './lib/run-check.ts';

try {
  const { values } = parseArgs({ options: { step: { type: 'string' } } });
  const { passed, failed } = await runCheck(values.step);
  say(`${passed} checks passed, ${failed} failed`);
  if (failed > 0) process.exitCode = 1;
} catch (error) {
  report(error);
}
