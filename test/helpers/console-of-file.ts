// One console with its operator for a whole test file, and connections to its database. Importing this starts them before
// the tests of the file and stops them after; both names hold them from then on.
import test from 'ava';
import pg from 'pg';
import { startTestConsole, type TestConsole } from './console.ts';

export let running: TestConsole;
export let database: pg.Pool;

test.before(async () => {
  running = await startTestConsole();
  database = new pg.Pool({ connectionString: running.databaseUrl, max: 2 });
});

test.after.always(async () => {
  await database?.end();
  await running?.stop();
});
