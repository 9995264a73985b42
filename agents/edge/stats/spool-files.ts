// The files of the spool: small, written whole, never changed. What the disk does is behind an interface, so that a test can
// end the process between any two steps.
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { ensurePrivateFolder, removeFile, writeFileAtomic } from '../../kit/files.ts';

/** Every method throws when the disk refuses. */
export interface SpoolFiles {
  list(): string[];
  size(name: string): number;
  read(name: string): Uint8Array;
  /** The file is there whole and durable afterwards, or as before. */
  write(name: string, data: Uint8Array | string): void;
  /** A missing one is fine. */
  remove(name: string): void;
}

const ENROLMENT = 'enrolment-';

/**
 * The files of one enrolment in `folder`, 0600. Those of others are deleted, and their folders' names answered: batches
 * never move to another enrolment.
 */
export function openSpoolFolder(folder: string, nodeId: string): { files: SpoolFiles; discarded: string[] } {
  ensurePrivateFolder(folder);
  const own = `${ENROLMENT}${encodeURIComponent(nodeId)}`;
  const discarded = readdirSync(folder).filter((name) => name !== own);
  for (const name of discarded) rmSync(join(folder, name), { recursive: true, force: true });
  const path = join(folder, own);
  ensurePrivateFolder(path);
  const files: SpoolFiles = {
    list: () => readdirSync(path),
    size: (name) => statSync(join(path, name)).size,
    read: (name) => readFileSync(join(path, name)),
    write: (name, data) => writeWhole(join(path, name), data),
    remove: (name) => removeFile(join(path, name)),
  };
  return { files, discarded };
}

function writeWhole(path: string, data: Uint8Array | string): void {
  const isNew = !existsSync(path);
  try {
    writeFileAtomic(path, data);
  } catch (error) {
    // It may be there all the same, with a number that the next try uses, too.
    if (isNew) removeFile(path);
    throw error;
  }
}
