// `npm run format`: formats TypeScript, JSON and Go, and applies the linter's safe fixes.
import { join } from 'node:path';
import { GO_MODULES } from './lib/caddy.ts';
import { findCommand, run } from './lib/commands.ts';
import { report, say } from './lib/progress.ts';
import { root } from './lib/root.ts';

const TIMEOUT_MS = 5 * 60_000;

try {
  const biome = join(root, 'node_modules', '.bin', 'biome');
  const { stderr, stdout } = await run(biome, ['check', '--write', '--colors=off', ...process.argv.slice(2)], {
    cwd: root,
    timeout: TIMEOUT_MS,
  }).catch((error: { stdout?: string; stderr?: string }) => {
    process.exitCode = 1;
    return { stdout: error.stdout ?? '', stderr: error.stderr ?? String(error) };
  });
  say(`${stderr}${stdout}`.trim());
  const gofmt = findCommand('gofmt');
  if (gofmt) await run(gofmt, ['-w', ...GO_MODULES], { timeout: TIMEOUT_MS });
} catch (error) {
  report(error);
}
