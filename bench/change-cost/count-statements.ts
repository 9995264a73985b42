// Preloaded into a console: counts the statements it sends to PostgreSQL by the pool that sends them, and answers the
// counts to whoever asks over the channel between parent and child.
import pg from 'pg';

interface Connection {
  connectionParameters?: { application_name?: string };
}

const counts: Record<string, number> = {};
const prototype = pg.Client.prototype as unknown as { query: (...args: unknown[]) => unknown };
const send = prototype.query;
prototype.query = function query(this: Connection, ...args: unknown[]) {
  const name = this.connectionParameters?.application_name ?? 'other';
  counts[name] = (counts[name] ?? 0) + 1;
  return send.apply(this, args);
};

process.on('message', (message) => {
  if (message === 'statements') process.send?.({ ...counts });
});
// The channel alone keeps no console running.
process.channel?.unref();
