// The journal as it was before its last rewrite, under a second name of its own: the rewrite puts a new file in its place, so
// keeping the old one costs no writing. It takes the journal's place when that kills whoever reads it.
import { readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { disk } from './disk.ts';
import { isErrno, removeFile, syncFolder } from './files.ts';

/** Where the file before the last rewrite is kept. */
export function beforePath(path: string): string {
  return `${path}.before`;
}

/** Keeps the present file, which is about to be replaced. Throws when the folder refuses. */
export function keepBefore(path: string): void {
  const link = `${path}.before-next`;
  removeFile(link);
  disk.link(path, link);
  disk.rename(link, beforePath(path));
}

/**
 * Puts the file before the last rewrite in place of the present one, which is kept for whoever wants to look; of those only
 * the last. Without one before there is no file afterwards. Throws when the folder refuses.
 */
export function setJournalAside(path: string): { aside: string; hadBefore: boolean } {
  const folder = dirname(path);
  const prefix = `${basename(path)}.fatal-`;
  const aside = join(folder, `${prefix}${new Date().toISOString().replace(/[-:]/g, '').replace('.', '')}`);
  for (const name of readdirSync(folder)) if (name.startsWith(prefix)) removeFile(join(folder, name));
  disk.rename(path, aside);
  let hadBefore = true;
  try {
    disk.rename(beforePath(path), path);
  } catch (error) {
    if (!isErrno(error, 'ENOENT')) throw error;
    hadBefore = false;
  }
  syncFolder(folder);
  return { aside, hadBefore };
}
