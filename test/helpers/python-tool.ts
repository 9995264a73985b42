// Programs in Python by others that tests run, each in a folder of its own, at pinned versions.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../../bin/lib/commands.ts';
import { during } from '../../bin/lib/progress.ts';
import { cacheDir, root } from '../../bin/lib/root.ts';

const INSTALL_TIMEOUT_MS = 5 * 60_000;

/** Installs what `test/NAME/requirements.txt` pins unless it is there; answers the folder of its commands. */
export async function ensurePythonTool(name: string): Promise<string> {
  const requirements = join(root, 'test', name, 'requirements.txt');
  const version = createHash('sha256').update(readFileSync(requirements)).digest('hex').slice(0, 12);
  const folder = join(cacheDir, `${name}-${version}`);
  const commands = join(folder, 'bin');
  const marker = join(folder, 'complete');
  if (existsSync(marker)) return commands;
  await during(`installing ${name}`, async () => {
    rmSync(folder, { recursive: true, force: true });
    const options = { timeout: INSTALL_TIMEOUT_MS, maxBuffer: 1 << 26 };
    await run('python3', ['-m', 'venv', folder], options);
    await run(join(commands, 'pip'), ['install', '--quiet', '--requirement', requirements], options);
    await run('touch', [marker], options);
  });
  return commands;
}
