// Files of one folder, and of nothing else.
import { constants } from 'node:fs';
import { type FileHandle, open, realpath } from 'node:fs/promises';
import { sep } from 'node:path';

export interface OpenedFile {
  handle: FileHandle;
  /** Bytes. */
  size: number;
  modifiedNs: bigint;
}

const ABSENT = new Set(['ENOENT', 'ENOTDIR', 'EISDIR', 'ELOOP', 'ENAMETOOLONG', 'ENXIO']);

/** Opens a regular file that lies inside the folder, links followed; null otherwise. `root` is a real path. */
export async function openInside(root: string, file: string): Promise<OpenedFile | null> {
  try {
    const real = await realpath(file);
    if (!real.startsWith(root + sep)) return null;
    // What has become a link since is refused, and a pipe is not waited for.
    const handle = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const stats = await handle.stat({ bigint: true });
    if (stats.isFile()) return { handle, size: Number(stats.size), modifiedNs: stats.mtimeNs };
    await handle.close();
    return null;
  } catch (error) {
    if (ABSENT.has((error as NodeJS.ErrnoException).code ?? '')) return null;
    throw error;
  }
}
