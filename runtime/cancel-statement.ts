// Cancels the statement that runs on a connection, as the protocol has it: a message on a connection of its own. A pooler passes it
// on to the connection that runs the statement.
import pg from 'pg';

const LONGEST_MS = 5_000;

interface Connection {
  stream: { destroy(): void };
  connect(port: number | string, host?: string): void;
  requestSsl(): void;
  cancel(processId: number, secretKey: number): void;
  on(event: 'error' | 'end' | 'connect' | 'sslconnect', listener: () => void): void;
}

/** What pg has of a connection beside what it describes. */
export interface CancelableClient {
  host: string;
  port: number;
  ssl: pg.ClientConfig['ssl'];
  processID: number;
  secretKey: number;
  /** Says to knex that the connection is not to be used again, and why. */
  __knex__disposed?: string;
}

/** Returns at once. The connection is not used again: a late cancel must meet no statement of another request. */
export function cancelStatement(client: CancelableClient): void {
  const { host, port, ssl, processID, secretKey } = client;
  client.__knex__disposed = 'its statement was canceled';
  const { connection } = new pg.Client({ host, port, ssl }) as unknown as { connection: Connection };
  const timer = setTimeout(() => connection.stream.destroy(), LONGEST_MS);
  const send = () => connection.cancel(processID, secretKey);
  connection.on('connect', () => (ssl ? connection.requestSsl() : send()));
  connection.on('sslconnect', send);
  // Without a cancel, the limits of the database end the statement.
  connection.on('error', () => connection.stream.destroy());
  connection.on('end', () => clearTimeout(timer));
  if (host.startsWith('/')) connection.connect(`${host}/.s.PGSQL.${port}`);
  else connection.connect(port, host);
}
