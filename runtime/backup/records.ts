// What is inside the chunks, after decompression: the parts of the database one after the other.
//
// Record: sort (1 byte), length (4 bytes, big-endian), content. Sorts: P partitions, T begins a table, D some of its rows
// as COPY writes them (text format), E ends it with what was counted, S sequences, Z ends the backup.
import { createHash, type Hash } from 'node:crypto';
import { damaged } from './backup-error.ts';
import { ByteReader } from './byte-reader.ts';

const MAX_RECORD_BYTES = 16 * 1024 * 1024;
/** Rows are cut into records of at most this, wherever that is. */
const MAX_DATA_BYTES = 256 * 1024;
const LINE_FEED = 10;

/** A part of a partitioned table. */
export interface PartitionOf {
  table: string;
  name: string;
  /** As PostgreSQL writes it: FOR VALUES FROM ('…') TO ('…'). */
  bound: string;
}

export interface SequenceValue {
  name: string;
  /** The last number given, decimal. */
  value: string;
}

export interface TableContent {
  table: string;
  columns: string[];
}

/** What was counted of a table. */
export interface TableTotals {
  rows: number;
  bytes: number;
  /** Of the rows as they are in the backup, hexadecimal. */
  sha256: string;
}

/** Counts what passes. */
export class Tally {
  readonly #hash: Hash = createHash('sha256');
  #rows = 0;
  #bytes = 0;

  add(data: Buffer): void {
    this.#hash.update(data);
    this.#bytes += data.length;
    for (let at = data.indexOf(LINE_FEED); at >= 0; at = data.indexOf(LINE_FEED, at + 1)) this.#rows++;
  }

  totals(): TableTotals {
    return { rows: this.#rows, bytes: this.#bytes, sha256: this.#hash.digest('hex') };
  }
}

export function record(sort: string, content: Buffer | object): Buffer {
  const bytes = Buffer.isBuffer(content) ? content : Buffer.from(JSON.stringify(content));
  const head = Buffer.alloc(5);
  head.write(sort, 0, 'latin1');
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

/** Records of the rows of a table, which are counted. */
export async function* dataRecords(rows: AsyncIterable<Buffer>, tally: Tally): AsyncGenerator<Buffer> {
  let held: Buffer[] = [];
  let bytes = 0;
  for await (const piece of rows) {
    tally.add(piece);
    held.push(piece);
    bytes += piece.length;
    if (bytes < MAX_DATA_BYTES) continue;
    yield* cut(Buffer.concat(held));
    held = [];
    bytes = 0;
  }
  if (bytes > 0) yield* cut(Buffer.concat(held));
}

function* cut(data: Buffer): Generator<Buffer> {
  for (let at = 0; at < data.length; at += MAX_DATA_BYTES) yield record('D', data.subarray(at, at + MAX_DATA_BYTES));
}

/** Whoever a backup is read for. */
export interface BackupVisitor {
  partitions(partitions: readonly PartitionOf[]): Promise<void>;
  /** Must read all rows. */
  table(content: TableContent, rows: AsyncIterable<Buffer>): Promise<void>;
  tableEnd(content: TableContent, totals: TableTotals): Promise<void>;
  sequences(sequences: readonly SequenceValue[]): Promise<void>;
}

/** Reads all records and compares what was counted. Throws BackupError (damaged). */
export async function readRecords(source: AsyncIterable<Buffer>, visitor: BackupVisitor): Promise<void> {
  const reader = new ByteReader(source);
  let tables = 0;
  for (;;) {
    const { sort, content } = await next(reader);
    if (sort === 'P') await visitor.partitions(json<PartitionOf[]>(content));
    else if (sort === 'S') await visitor.sequences(json<SequenceValue[]>(content));
    else if (sort === 'T') {
      tables++;
      await readTable(reader, json<TableContent>(content), visitor);
    } else if (sort === 'Z') {
      if (json<{ tables: number }>(content).tables !== tables || !(await reader.atEnd()))
        throw damaged('tables are missing');
      return;
    } else throw damaged('it has parts of an unknown sort');
  }
}

async function readTable(reader: ByteReader, content: TableContent, visitor: BackupVisitor): Promise<void> {
  const tally = new Tally();
  let said: TableTotals | undefined;
  async function* rows(): AsyncGenerator<Buffer> {
    for (;;) {
      const next_ = await next(reader);
      if (next_.sort === 'D') {
        tally.add(next_.content);
        yield next_.content;
      } else if (next_.sort === 'E') {
        said = json<TableTotals>(next_.content);
        const counted = tally.totals();
        if (said.rows !== counted.rows || said.sha256 !== counted.sha256)
          throw damaged(`rows of ${content.table} have changed`);
        return;
      } else throw damaged(`rows of ${content.table} are cut off`);
    }
  }
  await visitor.table(content, rows());
  if (!said) throw new Error(`rows of ${content.table} were not read to their end`);
  await visitor.tableEnd(content, said);
}

async function next(reader: ByteReader): Promise<{ sort: string; content: Buffer }> {
  const head = await reader.read(5);
  const length = head.readUInt32BE(1);
  if (length > MAX_RECORD_BYTES) throw damaged('a part has an impossible length');
  return { sort: String.fromCharCode(head[0]!), content: await reader.read(length) };
}

function json<T>(content: Buffer): T {
  try {
    return JSON.parse(content.toString()) as T;
  } catch {
    throw damaged('a part cannot be read');
  }
}
