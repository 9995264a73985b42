// The body of a backup: chunks of 64 KiB, each sealed with its number and whether it is the last one (the STREAM
// construction). So a chunk that is changed, missing, repeated or out of its place is noticed, and an end that was cut off.
//
// Chunk: length of its data and, as the highest bit, "last" (4 bytes, big-endian), data, tag (16 bytes).
import { createCipheriv, createDecipheriv, createHash, hkdfSync } from 'node:crypto';
import { damaged } from './backup-error.ts';
import type { ByteReader } from './byte-reader.ts';

const CHUNK_BYTES = 64 * 1024;
const TAG_BYTES = 16;
const KEY_BYTES = 32;
const LAST = 0x8000_0000;
const COUNTER_BYTES = 11;

interface Seal {
  close(nonce: Buffer, data: Buffer): { data: Buffer; tag: Buffer };
  /** Null: the tag is another. */
  open(nonce: Buffer, data: Buffer, tag: Buffer): Buffer | null;
}

/** AES-256-GCM under the file's key; without one, tags are hashes and reveal accidents, not malice. */
function sealOf(header: Buffer, fileKey: Buffer | null): Seal {
  const salt = createHash('sha256').update(header).digest();
  if (!fileKey) {
    const tagOf = (nonce: Buffer, data: Buffer) =>
      createHash('sha256').update(salt).update(nonce).update(data).digest().subarray(0, TAG_BYTES);
    return {
      close: (nonce, data) => ({ data, tag: tagOf(nonce, data) }),
      open: (nonce, data, tag) => (tagOf(nonce, data).equals(tag) ? data : null),
    };
  }
  const key = Buffer.from(hkdfSync('sha256', fileKey, salt, 'svc/backup/v1/payload', KEY_BYTES));
  return {
    close(nonce, data) {
      const cipher = createCipheriv('aes-256-gcm', key, nonce);
      const sealed = Buffer.concat([cipher.update(data), cipher.final()]);
      return { data: sealed, tag: cipher.getAuthTag() };
    },
    open(nonce, data, tag) {
      const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES }).setAuthTag(tag);
      const opened = decipher.update(data);
      try {
        decipher.final();
        return opened;
      } catch {
        return null;
      }
    },
  };
}

function nonceOf(counter: number, last: boolean): Buffer {
  const nonce = Buffer.alloc(COUNTER_BYTES + 1);
  nonce.writeUIntBE(counter, COUNTER_BYTES - 6, 6);
  nonce[COUNTER_BYTES] = last ? 1 : 0;
  return nonce;
}

/** Seals a stream; yields whole chunks. */
export async function* sealChunks(
  source: AsyncIterable<Buffer>,
  header: Buffer,
  fileKey: Buffer | null,
): AsyncGenerator<Buffer> {
  const seal = sealOf(header, fileKey);
  let counter = 0;
  const chunk = (plain: Buffer, last: boolean) => {
    const { data, tag } = seal.close(nonceOf(counter++, last), plain);
    const length = Buffer.alloc(4);
    length.writeUInt32BE((data.length | (last ? LAST : 0)) >>> 0);
    return Buffer.concat([length, data, tag]);
  };
  let held: Buffer[] = [];
  let bytes = 0;
  for await (const piece of source) {
    held.push(piece);
    bytes += piece.length;
    if (bytes <= CHUNK_BYTES) continue;
    let all = Buffer.concat(held);
    // The last chunk is known as such only when the source has ended, so one is always held back.
    for (; all.length > CHUNK_BYTES; all = all.subarray(CHUNK_BYTES)) yield chunk(all.subarray(0, CHUNK_BYTES), false);
    held = [all];
    bytes = all.length;
  }
  yield chunk(Buffer.concat(held), true);
}

/** Opens what {@link sealChunks} wrote, up to the end of the file. Throws BackupError (damaged). */
export async function* openChunks(reader: ByteReader, header: Buffer, fileKey: Buffer | null): AsyncGenerator<Buffer> {
  const seal = sealOf(header, fileKey);
  for (let counter = 0; ; counter++) {
    const word = (await reader.read(4)).readUInt32BE();
    const last = word >= LAST;
    const length = last ? word - LAST : word;
    if (length > CHUNK_BYTES) throw damaged(`part ${counter} has an impossible length`);
    const data = await reader.read(length);
    const opened = seal.open(nonceOf(counter, last), data, await reader.read(TAG_BYTES));
    if (!opened) throw damaged(`part ${counter} has changed`);
    if (opened.length > 0) yield opened;
    if (!last) continue;
    if (!(await reader.atEnd())) throw damaged('something follows its end');
    return;
  }
}
