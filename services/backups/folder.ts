// Where backups may go: below a folder that the environment names, and never into the program or what it serves.
import { randomUUID } from 'node:crypto';
import { open, realpath, rm } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import type { FolderProblem } from '../../contract/resources/backups.ts';
import type { ConsoleEnv } from '../../runtime/env.ts';

const PROGRAM = resolve(import.meta.dirname, '../..');

type Where = Pick<ConsoleEnv, 'backupDirs' | 'downloadsDir'>;

/**
 * Why backups cannot be written there; null: they can, as a file that was written there shows. `elsewhere`: another process may
 * have the folder, so one that is missing here is no problem.
 */
export async function folderProblem(
  { backupDirs, downloadsDir }: Where,
  folder: string,
  elsewhere: boolean,
): Promise<FolderProblem | null> {
  if (resolve(folder) !== folder) return 'not_allowed';
  if (!backupDirs.some((allowed) => isWithin(folder, allowed))) return 'not_allowed';
  const closed = [PROGRAM, ...(downloadsDir === null ? [] : [downloadsDir])];
  if (closed.some((one) => isWithin(folder, one))) return 'program';
  // Links lead elsewhere.
  const real = await realpath(folder).catch(() => null);
  if (real === null) return elsewhere ? null : 'missing';
  const reals = async (folders: readonly string[]) => Promise.all(folders.map((one) => realpath(one).catch(() => one)));
  if (!(await reals(backupDirs)).some((allowed) => isWithin(real, allowed))) return 'not_allowed';
  if ((await reals(closed)).some((one) => isWithin(real, one))) return 'program';
  return (await canWrite(real)) ? null : 'not_writable';
}

function isWithin(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way !== '..' && !way.startsWith('../');
}

async function canWrite(folder: string): Promise<boolean> {
  const file = join(folder, `.svc-backup-try-${randomUUID()}`);
  try {
    const handle = await open(file, 'wx', 0o600);
    await handle.close();
    await rm(file);
    return true;
  } catch {
    return false;
  }
}
