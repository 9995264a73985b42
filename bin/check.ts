// `npm run check`: formatting, lint, types, layering, protobuf rules, generated code, Go vet. Needs nothing running.
import { report, say } from './lib/progress.ts';
import { runCheck } from './lib/run-check.ts';

try {
  const { passed, failed } = await runCheck();
  say(`${passed} checks passed, ${failed} failed`);
  if (failed > 0) process.exitCode = 1;
} catch (error) {
  report(error);
}
