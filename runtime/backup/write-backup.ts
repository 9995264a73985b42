// Writes a backup: to a partial file beside its place, flushed to the disk, read back as a whole, and only then given its
// name. So a file with the name of a backup is one, whenever the process or the machine dies.
import { randomBytes, randomUUID } from 'node:crypto';
import { type FileHandle, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { constants, createZstdCompress } from 'node:zlib';
import { BackupError } from './backup-error.ts';
import { sealChunks } from './chunks.ts';
import { type DumpProgress, dumpRecords, takeSnapshot } from './dump.ts';
import { BACKUP_FORMAT, type BackupHeader, headerBytes, type OptionalPart } from './header.ts';
import { wrapKey } from './keys.ts';
import { type BackupContents, readBackup } from './read-backup.ts';
import type { TableTotals } from './records.ts';
import { withSession } from './session.ts';

export const BACKUP_SUFFIX = '.svcbackup';
const PARTIAL_SUFFIX = '.partial';
/** A partial file this old belongs to no process that still writes. */
const STALE_MS = 24 * 3_600_000;
const FILE_MODE = 0o600;
const COMPRESSION_LEVEL = 3;
const KEY_BYTES = 32;

export interface BackupOptions {
  databaseUrl: string;
  /** A file that must not exist yet, or a folder, in which the file is named after its time. */
  to: string;
  /** Public keys; none: the file is not encrypted. */
  recipients: readonly string[];
  leftOut: readonly OptionalPart[];
  /** Tables of each part that can be left out. */
  optionalTables: Readonly<Record<OptionalPart, readonly string[]>>;
  /** Of the console. */
  version: string;
  signal?: AbortSignal;
  onProgress?(progress: DumpProgress & { phase: 'write' | 'verify' }): void;
}

export interface WrittenBackup extends BackupContents {
  file: string;
  bytes: number;
  rows: number;
}

/** Writes and verifies a backup. Throws BackupError; nothing is left then. */
export async function writeBackup(options: BackupOptions): Promise<WrittenBackup> {
  const { databaseUrl, signal, leftOut, optionalTables } = options;
  const place = await placeOf(options.to);
  // Before anything is read: a typing error in a key costs nothing.
  const fileKey = options.recipients.length > 0 ? randomBytes(KEY_BYTES) : null;
  const recipients = options.recipients.map((each) => wrapKey(fileKey!, each));
  return withSession(databaseUrl, signal, async (client) => {
    const snapshot = await takeSnapshot(
      client,
      leftOut.flatMap((part) => optionalTables[part]),
    );
    const header: BackupHeader = {
      format: BACKUP_FORMAT,
      id: randomUUID(),
      createdAt: snapshot.createdAt,
      console: options.version,
      migrations: snapshot.migrations,
      masterKey: snapshot.masterKey,
      leftOut: [...leftOut],
      recipients,
    };
    const file = place.folder ? join(place.folder, fileName(header)) : place.file;
    const partial = `${file}.${process.pid}-${header.id.slice(0, 8)}${PARTIAL_SUFFIX}`;
    await refuseExisting(file);
    const written = new Map<string, TableTotals>();
    const body = dumpRecords(
      client,
      snapshot,
      ({ table }, totals) => written.set(table, totals),
      (progress) => options.onProgress?.({ ...progress, phase: 'write' }),
    );
    try {
      await writeFile(partial, headerBytes(header), body, fileKey, signal);
      const contents = await verify(partial, fileKey, written, options);
      await refuseExisting(file);
      await rename(partial, file);
      await syncFolder(dirname(file));
      const rows = [...written.values()].reduce((sum, each) => sum + each.rows, 0);
      return { ...contents, file, bytes: (await stat(file)).size, rows };
    } catch (error) {
      await rm(partial, { force: true });
      throw asDiskProblem(error, file);
    }
  });
}

async function writeFile(
  partial: string,
  header: Buffer,
  body: AsyncIterable<Buffer>,
  fileKey: Buffer | null,
  signal: AbortSignal | undefined,
): Promise<void> {
  const handle = await open(partial, 'wx', FILE_MODE);
  try {
    await handle.writeFile(header);
    const compress = createZstdCompress({
      params: { [constants.ZSTD_c_compressionLevel]: COMPRESSION_LEVEL, [constants.ZSTD_c_checksumFlag]: 1 },
    });
    const seal = (source: AsyncIterable<Buffer>) => sealChunks(source, header, fileKey);
    await pipeline(body, compress, seal, (chunks: AsyncIterable<Buffer>) => writeAll(handle, chunks), {
      ...(signal && { signal }),
    });
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function writeAll(handle: FileHandle, chunks: AsyncIterable<Buffer>): Promise<void> {
  for await (const chunk of chunks) {
    for (let rest = chunk; rest.length > 0; ) rest = rest.subarray((await handle.write(rest)).bytesWritten);
  }
}

/** Reads the file as a restore would and compares it with what the database gave. */
async function verify(
  partial: string,
  fileKey: Buffer | null,
  written: ReadonlyMap<string, TableTotals>,
  { signal, onProgress }: BackupOptions,
): Promise<BackupContents> {
  const totalRows = [...written.values()].reduce((sum, each) => sum + each.rows, 0);
  let rows = 0;
  const contents = await readBackup(
    partial,
    { fileKey },
    {
      async tableEnd({ table }, totals) {
        if (written.get(table)?.sha256 !== totals.sha256) {
          throw new BackupError('damaged', `The disk did not return what was written (${table}). No backup was made.`);
        }
        rows += totals.rows;
        onProgress?.({ table, rows, totalRows, phase: 'verify' });
      },
    },
    signal,
  );
  if (contents.tables.size !== written.size) {
    throw new BackupError('damaged', 'The disk did not return what was written. No backup was made.');
  }
  return contents;
}

async function placeOf(to: string): Promise<{ folder: string | null; file: string }> {
  const found = await stat(to).catch(() => null);
  const folder = found?.isDirectory() ? to : null;
  if (!folder && to.endsWith('/')) throw new BackupError('file_unreadable', `The folder does not exist: ${to}`);
  const parent = folder ?? dirname(to);
  if (!(await stat(parent).catch(() => null))?.isDirectory()) {
    throw new BackupError('file_unreadable', `The folder does not exist: ${parent}`);
  }
  if (folder) await removeStale(folder);
  return { folder, file: to };
}

/** What processes that were killed have left. */
async function removeStale(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!name.endsWith(PARTIAL_SUFFIX) || !name.includes(BACKUP_SUFFIX)) continue;
    const file = join(folder, name);
    const found = await stat(file).catch(() => null);
    if (found && Date.now() - found.mtimeMs > STALE_MS) await rm(file, { force: true });
  }
}

/** Sorts by time. */
function fileName({ createdAt, id }: BackupHeader): string {
  return `console-${createdAt.replaceAll(/[-:]|\.\d+/g, '')}-${id.slice(0, 8)}${BACKUP_SUFFIX}`;
}

async function refuseExisting(file: string): Promise<void> {
  if (await stat(file).catch(() => null)) {
    throw new BackupError(
      'file_exists',
      `${basename(file)} exists already. Backups overwrite nothing: choose another name.`,
    );
  }
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function asDiskProblem(error: unknown, file: string): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    return new BackupError(
      'disk_full',
      `The disk of ${dirname(file)} is full. No backup was made, and nothing was left there.`,
      {
        cause: error,
      },
    );
  }
  if (code && syscall) {
    return new BackupError('file_unreadable', `${dirname(file)} cannot be written (${code}). No backup was made.`, {
      cause: error,
    });
  }
  return error;
}
