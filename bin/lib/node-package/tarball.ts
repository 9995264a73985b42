// A tar archive (POSIX ustar) that depends on its content alone: names in order, one time, no owners.
import { createReadStream, statSync } from 'node:fs';

export interface Entry {
  /** Path inside the archive. */
  name: string;
  /** A file on disk, or the content itself. */
  content: { file: string } | string;
  executable?: boolean;
}

/** 2000-01-01, for every entry. */
const TIME = 946_684_800;
const BLOCK = 512;

/** Bytes of the archive. */
export async function* tarball(entries: readonly Entry[]): AsyncGenerator<Uint8Array> {
  const sorted = entries.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  for (const folder of foldersOf(sorted)) yield header({ name: `${folder}/`, size: 0, mode: 0o755, type: '5' });
  for (const { name, content, executable } of sorted) {
    const mode = executable ? 0o755 : 0o644;
    const size = typeof content === 'string' ? Buffer.byteLength(content) : statSync(content.file).size;
    yield header({ name, size, mode, type: '0' });
    if (typeof content === 'string') yield Buffer.from(content);
    else yield* createReadStream(content.file, { end: Math.max(size - 1, 0) }) as AsyncIterable<Uint8Array>;
    yield Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK);
  }
  yield Buffer.alloc(2 * BLOCK);
}

/** Every folder of the names, outer ones first. */
function foldersOf(entries: readonly Entry[]): string[] {
  const folders = new Set<string>();
  for (const { name } of entries) {
    const parts = name.split('/').slice(0, -1);
    for (let depth = 1; depth <= parts.length; depth++) folders.add(parts.slice(0, depth).join('/'));
  }
  return [...folders].sort();
}

interface Head {
  name: string;
  size: number;
  mode: number;
  /** '0' for a file, '5' for a folder. */
  type: '0' | '5';
}

function header({ name, size, mode, type }: Head): Buffer {
  if (Buffer.byteLength(name) > 100) throw new RangeError(`the name ${name} is too long for this kind of archive`);
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, offset: number, width: number) =>
    block.write(`${value.toString(8).padStart(width - 1, '0')}\0`, offset);
  block.write(name, 0);
  octal(mode, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(size, 124, 12);
  octal(TIME, 136, 12);
  block.write(' '.repeat(8), 148);
  block.write(type, 156);
  block.write('ustar\x0000', 257);
  let sum = 0;
  for (const byte of block) sum += byte;
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return block;
}
