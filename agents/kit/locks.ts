// Locks that a dead owner cannot keep and nobody else can take away: flock(2) on a folder or file that only its owner can
// open. Node has no call for it, so the flock program of util-linux locks the descriptor it inherits: the lock belongs to the
// open file, which this process alone holds afterwards (children are given none of its descriptors), and ends with it.
import { spawnSync } from 'node:child_process';
import { closeSync, constants, fstatSync, openSync, statSync } from 'node:fs';
import { removeFile } from './files.ts';

export interface Lock {
  release(): void;
  /** Releases it and removes the file that was made for it. */
  remove(): void;
}

/** Exit code of flock when another process has the lock. */
const HELD = 1;

/** Locks an existing folder; undefined when another process has it. Throws when the flock program cannot be run. */
export function lockFolder(folder: string): Lock | undefined {
  const fd = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY);
  if (!tryLock(fd)) return undefined;
  const release = (): void => closeSync(fd);
  return { release, remove: release };
}

/** Locks a file, made when it is missing; undefined when another process has it. Throws as lockFolder does. */
export function lockFile(path: string): Lock | undefined {
  for (;;) {
    const fd = openSync(path, constants.O_RDONLY | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
    if (!tryLock(fd)) return undefined;
    // Removed by its last owner between the opening and the locking: whoever comes next makes another one.
    if (statSync(path, { throwIfNoEntry: false })?.ino !== fstatSync(fd).ino) {
      closeSync(fd);
      continue;
    }
    return {
      release: () => closeSync(fd),
      remove: () => {
        removeFile(path);
        closeSync(fd);
      },
    };
  }
}

/** True with the lock; false, and closed, without. */
function tryLock(fd: number): boolean {
  // Letters that busybox knows, too.
  const { status, error, stderr } = spawnSync('flock', ['-x', '-n', '3'], {
    stdio: ['ignore', 'ignore', 'pipe', fd],
    encoding: 'utf8',
  });
  if (status === 0) return true;
  closeSync(fd);
  if (status === HELD && stderr === '') return false;
  throw new Error(`flock from util-linux does not work: ${error?.message ?? stderr.trim()}`);
}
