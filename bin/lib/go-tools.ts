// Programs in Go by others that tests and the demo use. A folder of bin/go-tools names some at pinned versions, with the
// checksums of their sources; they are built once for all clones and kept under the hash of what was pinned.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { GO_BUILD_FLAGS, goEnvironment, needGo } from './caddy.ts';
import { run } from './commands.ts';
import { takeLock } from './lock.ts';
import { during } from './progress.ts';
import { root, sharedCacheDir } from './root.ts';

const BUILD_TIMEOUT_MS = 15 * 60_000;

/** Builds the programs of `bin/go-tools/NAME` unless they are there; answers the folder they lie in. Throws a Refusal without Go. */
export async function buildGoTools(name: string): Promise<string> {
  const module = join(root, 'bin', 'go-tools', name);
  const hash = createHash('sha256').update(`${process.platform}-${process.arch}\n`);
  for (const file of ['go.mod', 'go.sum']) hash.update(readFileSync(join(module, file)));
  const kept = join(sharedCacheDir, 'go-tools');
  const folder = join(kept, `${name}-${hash.digest('hex').slice(0, 12)}`);
  if (existsSync(folder)) return folder;
  const go = await needGo();
  mkdirSync(kept, { recursive: true });
  const lock = await takeLock(join(kept, `${name}.lock`), `the build of ${name}`, { waitMs: BUILD_TIMEOUT_MS });
  try {
    if (existsSync(folder)) return folder;
    const temporary = `${folder}.new`;
    rmSync(temporary, { recursive: true, force: true });
    await during(`building ${name}`, () =>
      run(go, ['build', ...GO_BUILD_FLAGS, '-mod=readonly', '-ldflags', '-s -w', '-o', `${temporary}/`, 'tool'], {
        cwd: module,
        env: goEnvironment(process),
        timeout: BUILD_TIMEOUT_MS,
        maxBuffer: 1 << 24,
      }),
    );
    renameSync(temporary, folder);
  } finally {
    lock.release();
  }
  return folder;
}
