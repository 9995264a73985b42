// Where socket, status and supervisor's record lie: in a tmpfs, so that a full disk does not touch them. The place follows
// from the state folder and its owner, so that `status` and the next supervisor find it without being told.
import { createHash } from 'node:crypto';
import { chmodSync, lstatSync, mkdirSync, realpathSync, rmSync, type Stats, statfsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ensurePrivateFolder, isErrno } from '../kit/files.ts';
import { UsageError } from '../kit/options.ts';

/** Longest path a unix socket can have on Linux, bytes. */
const SOCKET_PATH_MAX = 107;
const TMPFS_MAGIC = 0x0102_1994;
const RAMFS_MAGIC = 0x8584_58f6;

/** Where systemd puts the folder of the service (RuntimeDirectory=). */
const SERVICE_FOLDER = '/run/svc-edge';

/** Folders of one user for all of his nodes, the best first. They need not exist, and may be another user's. */
function userFolders(uid: number): string[] {
  return [
    SERVICE_FOLDER,
    uid === 0 ? '/run/svc-edge-0' : `/run/user/${uid}/svc-edge`,
    // Everybody may write there: whoever takes our name first only takes it away from us.
    `/dev/shm/svc-edge-${uid}`,
  ];
}

/** All folders in which a node with this state folder may have its files, the best first; the last is on its disk. */
function nodeFolders(stateDir: string, uid: number): string[] {
  const name = createHash('sha256').update(realpathSync(stateDir)).digest('hex').slice(0, 16);
  return [...userFolders(uid).map((folder) => join(folder, name)), join(stateDir, 'run')];
}

/** A folder of ours in a tmpfs that others cannot enter, for what all nodes of this user share; undefined without one. */
export function openUserFolder(): string | undefined {
  return userFolders(process.getuid!()).find(isOurs);
}

/**
 * The folder for this node's socket and status, made private (0700). `given` is taken as it is; without it a tmpfs is
 * looked for, and a folder on the disk serves when there is none. Throws UsageError when the path is too long for a socket.
 */
export function openRunFolder(stateDir: string, given?: string): string {
  if (given !== undefined) {
    checkLength(given);
    ensurePrivateFolder(given);
    return given;
  }
  const uid = process.getuid!();
  for (const folder of nodeFolders(stateDir, uid)) {
    if (dirname(folder) === stateDir) continue;
    if (isOurs(dirname(folder)) && isOurs(folder)) return folder;
  }
  const folder = join(stateDir, 'run');
  checkLength(folder);
  ensurePrivateFolder(folder);
  return folder;
}

/** Folders in which a node with this state folder left something: those that are private to the owner of the state. */
export function existingRunFolders(stateDir: string, given?: string): string[] {
  if (given !== undefined) return [given];
  const { uid } = statSync(stateDir);
  return nodeFolders(stateDir, uid).filter((folder) =>
    [dirname(folder), folder].every((path) => isPrivate(statIfPresent(path), uid)),
  );
}

/** Removes a folder that `openRunFolder` found by itself, with all that is in it. */
export function removeRunFolder(stateDir: string, folder: string): void {
  if (nodeFolders(stateDir, process.getuid!()).includes(folder)) rmSync(folder, { recursive: true, force: true });
}

/** Throws UsageError when a socket in `folder` would have too long a path. */
export function checkLength(folder: string): void {
  const socket = join(folder, 'edge.sock');
  if (Buffer.byteLength(socket) > SOCKET_PATH_MAX)
    throw new UsageError(
      `${socket} exceeds the ${SOCKET_PATH_MAX} bytes of a Unix socket path; set a shorter --run-dir`,
    );
}

/** Makes `folder` where that is possible; true when it is in a tmpfs and nobody else's. */
function isOurs(folder: string): boolean {
  try {
    const { type } = statfsSync(dirname(folder));
    if (type !== TMPFS_MAGIC && type !== RAMFS_MAGIC) return false;
    // The service's folder is made by systemd alone: its owner is whom the unit names.
    if (folder !== SERVICE_FOLDER) makeFolder(folder);
    const uid = process.getuid!();
    const stats = statIfPresent(folder);
    if (stats?.isDirectory() && stats.uid === uid && (stats.mode & 0o077) !== 0) chmodSync(folder, 0o700);
    return isPrivate(statIfPresent(folder), uid);
  } catch {
    return false;
  }
}

function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if (!isErrno(error, 'EEXIST')) throw error;
  }
}

/** Not a link: those of others could lead anywhere. */
function isPrivate(stats: Stats | undefined, uid: number): boolean {
  return stats?.isDirectory() === true && stats.uid === uid && (stats.mode & 0o077) === 0;
}

function statIfPresent(path: string): Stats | undefined {
  return lstatSync(path, { throwIfNoEntry: false });
}
