// Schemathesis (Python) in a folder of its own, at pinned versions.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../../bin/lib/commands.ts';
import { during } from '../../bin/lib/progress.ts';
import { cacheDir, root } from '../../bin/lib/root.ts';

const INSTALL_TIMEOUT_MS = 5 * 60_000;
/** Where the output of a run that found something is kept. */
export const schemathesisReport = join(cacheDir, 'test-logs', 'schemathesis-report.txt');
const requirements = join(root, 'test', 'schemathesis', 'requirements.txt');

/** Installs it unless it is there; answers the path of its command. */
export async function ensureSchemathesis(): Promise<string> {
  const version = createHash('sha256').update(readFileSync(requirements)).digest('hex').slice(0, 12);
  const folder = join(cacheDir, `schemathesis-${version}`);
  const command = join(folder, 'bin', 'st');
  const marker = join(folder, 'complete');
  if (existsSync(marker)) return command;
  await during('installing schemathesis', async () => {
    rmSync(folder, { recursive: true, force: true });
    const options = { timeout: INSTALL_TIMEOUT_MS, maxBuffer: 1 << 26 };
    await run('python3', ['-m', 'venv', folder], options);
    await run(join(folder, 'bin', 'pip'), ['install', '--quiet', '--requirement', requirements], options);
    await run('touch', [marker], options);
  });
  return command;
}
