// Reads a backup from its file: opened, decompressed and compared with what was counted when it was written.
import type { KeyObject } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { createZstdDecompress } from 'node:zlib';
import { BackupError, damaged } from './backup-error.ts';
import { ByteReader } from './byte-reader.ts';
import { openChunks } from './chunks.ts';
import { type BackupHeader, readHeader } from './header.ts';
import { unwrapKey } from './keys.ts';
import { type BackupVisitor, readRecords, type SequenceValue, type TableTotals } from './records.ts';

/** How the body is opened: with the secret key of a recipient, or with the file's own key by who has just written it. */
export type BackupKey = { secret: KeyObject | null } | { fileKey: Buffer | null };

/** What a backup contains. */
export interface BackupContents {
  header: BackupHeader;
  tables: Map<string, TableTotals>;
  sequences: SequenceValue[];
}

/** The header of a backup. Throws BackupError. */
export async function readBackupHeader(file: string): Promise<BackupHeader> {
  return withFile(file, undefined, async (reader) => (await readHeader(reader)).header);
}

/** Reads a whole backup. Throws BackupError for one that is damaged or cannot be opened with the key. */
export async function readBackup(
  file: string,
  key: BackupKey,
  visitor: Partial<BackupVisitor> = {},
  signal?: AbortSignal,
): Promise<BackupContents> {
  return withFile(file, signal, async (reader) => {
    const { header, bytes } = await readHeader(reader);
    const contents: BackupContents = { header, tables: new Map(), sequences: [] };
    const decompressed = createZstdDecompress();
    const opened = Readable.from(openChunks(reader, bytes, fileKeyOf(header, key)), { objectMode: false });
    opened.on('error', (error) => decompressed.destroy(error));
    opened.pipe(decompressed);
    try {
      await readRecords(decompressed as AsyncIterable<Buffer>, {
        partitions: async (all) => visitor.partitions?.(all),
        async table(content, rows) {
          if (visitor.table) return visitor.table(content, rows);
          for await (const _ of rows);
        },
        async tableEnd(content, totals) {
          contents.tables.set(content.table, totals);
          await visitor.tableEnd?.(content, totals);
        },
        async sequences(all) {
          contents.sequences.push(...all);
          await visitor.sequences?.(all);
        },
      });
    } catch (error) {
      if (isOfZstd(error)) throw damaged('its compression is broken');
      throw error;
    } finally {
      opened.destroy();
      decompressed.destroy();
    }
    return contents;
  });
}

function fileKeyOf({ recipients }: BackupHeader, key: BackupKey): Buffer | null {
  if ('fileKey' in key) return key.fileKey;
  if (recipients.length === 0) return null;
  if (!key.secret) {
    throw new BackupError('key_missing', 'The backup is encrypted. Name the file with its secret key: --key FILE.');
  }
  return unwrapKey(recipients, key.secret);
}

function isOfZstd(error: unknown): boolean {
  return /^(ZSTD_|Z_)/.test((error as { code?: string }).code ?? '');
}

async function withFile<T>(
  file: string,
  signal: AbortSignal | undefined,
  work: (reader: ByteReader) => Promise<T>,
): Promise<T> {
  const stream = createReadStream(file, { highWaterMark: 256 * 1024, ...(signal && { signal }) });
  try {
    return await work(new ByteReader(stream as AsyncIterable<Buffer>));
  } catch (error) {
    signal?.throwIfAborted();
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (code && syscall) {
      throw new BackupError('file_unreadable', `The backup cannot be read (${code}): ${file}`, { cause: error });
    }
    throw error;
  } finally {
    stream.destroy();
  }
}
