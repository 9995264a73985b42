// COPY of one table as a stream in either direction, in bounded memory: whoever is slower makes the other wait.
import type { Socket } from 'node:net';
import pg, { type Client } from 'pg';

/** What of pg's own connection is needed here. */
interface CopyConnection {
  readonly stream: Socket;
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
  sendCopyFail(reason: string): void;
}

interface CopyDataMessage {
  chunk: Buffer;
}

const HIGH_BYTES = 1024 * 1024;

type Done = (error: Error | null | undefined) => void;

class CopyOutQuery extends pg.Query {
  readonly #onData: (chunk: Buffer, connection: CopyConnection) => void;

  constructor(text: string, onData: (chunk: Buffer, connection: CopyConnection) => void, done: Done) {
    super(text, done);
    this.#onData = onData;
  }

  /** Called by pg for each row. */
  handleCopyData({ chunk }: CopyDataMessage, connection: CopyConnection): void {
    this.#onData(chunk, connection);
  }
}

/** What `copy … to stdout` writes. A caller that ends early leaves the connection unusable: close it. */
export async function* copyOut(client: Client, statement: string): AsyncGenerator<Buffer> {
  let held: Buffer[] = [];
  let bytes = 0;
  let ended = false;
  let failure: Error | undefined;
  let connection: CopyConnection | undefined;
  let wake = Promise.withResolvers<void>();
  const query = new CopyOutQuery(
    statement,
    (chunk, on) => {
      connection = on;
      // pg reuses the memory of a message.
      held.push(Buffer.from(chunk));
      bytes += chunk.length;
      if (bytes > HIGH_BYTES) on.stream.pause();
      wake.resolve();
    },
    (error) => {
      ended = true;
      failure = error ?? undefined;
      wake.resolve();
    },
  );
  client.query(query);
  for (;;) {
    await wake.promise;
    wake = Promise.withResolvers<void>();
    if (failure) throw failure;
    const all = held;
    const done = ended;
    held = [];
    bytes = 0;
    connection?.stream.resume();
    if (all.length > 0) yield Buffer.concat(all);
    if (done) return;
  }
}

class CopyInQuery extends pg.Query {
  readonly #onReady: (connection: CopyConnection) => void;

  constructor(text: string, onReady: (connection: CopyConnection) => void, done: Done) {
    super(text, done);
    this.#onReady = onReady;
  }

  /** Called by pg when the database waits for the rows. */
  handleCopyInResponse(connection: CopyConnection): void {
    this.#onReady(connection);
  }
}

/** Gives the rows to `copy … from stdin`. Throws what the database says of them, or what reading them throws. */
export async function copyInStream(client: Client, statement: string, rows: AsyncIterable<Buffer>): Promise<void> {
  const ready = Promise.withResolvers<CopyConnection>();
  const ended = Promise.withResolvers<void>();
  let failed = false;
  const query = new CopyInQuery(statement, ready.resolve, (error) => {
    if (!error) return ended.resolve();
    failed = true;
    ended.reject(error);
    ready.reject(error);
  });
  // The failure is thrown below; until then nobody may call it unhandled.
  ended.promise.catch(() => undefined);
  client.query(query);
  const connection = await ready.promise;
  try {
    for await (const piece of rows) {
      if (failed) break;
      connection.sendCopyFromChunk(piece);
      if (connection.stream.writableNeedDrain) await Promise.race([drained(connection.stream), ended.promise]);
    }
  } catch (error) {
    if (!failed) {
      connection.sendCopyFail('the backup cannot be read');
      await ended.promise.catch(() => undefined);
    }
    throw error;
  }
  if (!failed) connection.endCopyFrom();
  await ended.promise;
}

function drained(stream: Socket): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const done = () => {
    stream.off('drain', done).off('close', done);
    resolve();
  };
  stream.on('drain', done).on('close', done);
  return promise;
}
