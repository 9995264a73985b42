// COPY from the process into a table: the database takes rows in bulk, without values to bind and plans to make.
import pg, { type PoolClient } from 'pg';

/** What of pg's own connection is needed here. */
interface CopyConnection {
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
}

class CopyQuery extends pg.Query {
  readonly #data: Buffer;

  constructor(text: string, data: Buffer, done: (error: Error | undefined) => void) {
    super(text, done);
    this.#data = data;
  }

  /** Called by pg when the database waits for the rows. */
  handleCopyInResponse(connection: CopyConnection): void {
    connection.sendCopyFromChunk(this.#data);
    connection.endCopyFrom();
  }
}

type Field = string | number | boolean | null;

/** Appends rows to a table; `columns` are those of the fields, in this order. Throws what the database says of a bad row. */
export function copyIn(
  client: PoolClient,
  table: string,
  columns: readonly string[],
  rows: readonly (readonly Field[])[],
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const done = (error: Error | undefined) => (error ? reject(error) : resolve());
  let text = '';
  for (const row of rows) {
    for (let index = 0; index < row.length; index++)
      text += index === 0 ? written(row[0]!) : `\t${written(row[index]!)}`;
    text += '\n';
  }
  const data = Buffer.from(text);
  client.query(new CopyQuery(`copy ${table} (${columns.join()}) from stdin`, data, done));
  return promise;
}

const SPECIAL = /[\\\t\n\r]/;
const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' };

function written(field: Field): string {
  if (field === null) return '\\N';
  if (typeof field !== 'string') return String(field);
  if (!SPECIAL.test(field)) return field;
  return field.replaceAll(/[\\\t\n\r]/g, (character) => ESCAPES[character]!);
}

/** Writes times, most of which many rows have, each once. */
export function minuteTexts(): (ms: number) => string {
  const known = new Map<number, string>();
  return (ms) => {
    let text = known.get(ms);
    if (text === undefined) {
      text = new Date(ms).toISOString();
      known.set(ms, text);
    }
    return text;
  };
}
