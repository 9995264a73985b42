// The first two lines of a backup: what the file is, and its header as JSON. Neither is compressed or encrypted, so that
// a file that cannot be restored here says why; the key of all that follows is bound to both.
import Type, { type Static } from 'typebox';
import { Value } from 'typebox/value';
import { BackupError, damaged } from './backup-error.ts';
import type { ByteReader } from './byte-reader.ts';

const MAGIC = 'Edge Delivery Console backup';
export const BACKUP_FORMAT = 1;
const MAX_HEADER_BYTES = 1024 * 1024;

/** Parts that a backup can be made without. */
export const OPTIONAL_PARTS = ['logs', 'statistics'] as const;
export type OptionalPart = (typeof OPTIONAL_PARTS)[number];

const Header = Type.Object({
  format: Type.Literal(BACKUP_FORMAT),
  id: Type.String(),
  /** Time of the snapshot, ISO 8601. */
  createdAt: Type.String(),
  /** Version of the console that wrote it. */
  console: Type.String(),
  /** Names of the migrations that the database had, in order. */
  migrations: Type.Array(Type.String(), { minItems: 1 }),
  /** Fingerprint of the master key that its secrets are sealed under; null before a console has started. */
  masterKey: Type.Union([Type.String(), Type.Null()]),
  leftOut: Type.Array(Type.Union([Type.Literal('logs'), Type.Literal('statistics')])),
  /** Empty: the file is not encrypted. */
  recipients: Type.Array(Type.Object({ publicKey: Type.String(), ephemeral: Type.String(), wrapped: Type.String() })),
});

export type BackupHeader = Static<typeof Header>;

export function headerBytes(header: BackupHeader): Buffer {
  return Buffer.from(`${MAGIC}\n${JSON.stringify(header)}\n`);
}

/** The header with its bytes. Throws BackupError: not a backup, one of a newer format, a damaged one. */
export async function readHeader(reader: ByteReader): Promise<{ header: BackupHeader; bytes: Buffer }> {
  const magic = await reader.line(MAX_HEADER_BYTES);
  if (magic.toString() !== MAGIC) throw damaged('it does not begin as a backup does');
  const line = await reader.line(MAX_HEADER_BYTES);
  let header: unknown;
  try {
    header = JSON.parse(line.toString());
  } catch (error) {
    throw new BackupError('damaged', damaged('its header cannot be read').message, { cause: error });
  }
  const format = (header as { format?: unknown } | null)?.format;
  if (typeof format === 'number' && format > BACKUP_FORMAT) {
    throw new BackupError(
      'newer',
      `A newer release wrote this backup (format ${format}). Restore it with that release.`,
    );
  }
  if (!Value.Check(Header, header)) throw damaged('its header is incomplete');
  return { header, bytes: Buffer.from(`${MAGIC}\n${line.toString()}\n`) };
}
