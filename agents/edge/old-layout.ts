// Journals and keys once lay beside the node's private key. They moved into a folder of their own, so that Caddy can be
// kept from everything else.
import { renameSync } from 'node:fs';
import { basename, join } from 'node:path';
import { ensurePrivateFolder, isErrno, removeFile, syncFolder } from '../kit/files.ts';
import type { Log } from '../kit/log.ts';
import type { EdgePaths } from './paths.ts';

/**
 * Makes the folder of what Caddy reads and moves into it what an older version left in the state folder. Each file is
 * moved by one rename, so that after a crash the next call goes on. A file in the old place was written by an older
 * version after this one ran, so it is the newer one. Call it before anything opens these files; throws when the disk
 * refuses.
 */
export function adoptOldLayout(paths: EdgePaths, log: Log): void {
  ensurePrivateFolder(paths.edgeDir);
  const moved: string[] = [];
  for (const path of [paths.configJournal, paths.banJournal, paths.securityJournal, paths.challengeKeys]) {
    const name = basename(path);
    const old = join(paths.stateDir, name);
    // What a crash left half written.
    for (const draft of ['.next', '.shadow']) removeFile(old + draft);
    try {
      renameSync(old, path);
      moved.push(name);
    } catch (error) {
      if (!isErrno(error, 'ENOENT')) throw error;
    }
  }
  if (moved.length === 0) return;
  syncFolder(paths.edgeDir);
  syncFolder(paths.stateDir);
  log.info('files of an older version moved', { folder: paths.edgeDir, files: moved.join() });
}
