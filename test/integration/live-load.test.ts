// Fifty open consoles while a thousand nodes report: each of them gets a few lines a second, and what that costs the
// process is printed.
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import pg from 'pg';
import { TEST_OPERATOR } from '../../bin/lib/console-client.ts';
import { BrowserClient } from '../helpers/browser-client.ts';
import { startTestConsoleProcess, type TestConsoleProcess } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { watchLive } from '../helpers/live-client.ts';

const { email, password } = TEST_OPERATOR;
const WATCHERS = 50;
const NODES = 1_000;
const ROUNDS = 40;
const ROUND_MS = 100;
/** The console's own bound: lines are at least so far apart. */
const TICK_MS = 150;

let running: TestConsoleProcess;
let database: pg.Pool;

test.before(async () => {
  running = await startTestConsoleProcess();
  database = new pg.Pool({ connectionString: running.databaseUrl, max: 2 });
});

test.after.always(async () => {
  await database?.end();
  await running?.stop();
});

function used(pid: number): { cpuMs: number; rssMiB: number } {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ');
  const pages = Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]);
  // Clock ticks are hundredths of a second.
  return { cpuMs: (Number(fields[11]) + Number(fields[12])) * 10, rssMiB: (pages * 4096) / 2 ** 20 };
}

/** Every node reports within each second. */
async function reports(): Promise<{ cpuMs: number; rssMiB: number; tookMs: number }> {
  const [before, began] = [used(running.child.pid), performance.now()];
  const each = (NODES * ROUND_MS) / 1_000;
  for (let round = 0; round < ROUNDS; round++) {
    await database.query(
      `insert into outbox (topic, key) select 'live', 'nodes n' || ($1::int * $2::int + i) % $3::int
         from generate_series(1, $2::int) as i`,
      [round, each, NODES],
    );
    await sleep(ROUND_MS);
  }
  await eventually(async () => (await database.query('select 1 from outbox')).rowCount === 0);
  const after = used(running.child.pid);
  return { cpuMs: after.cpuMs - before.cpuMs, rssMiB: after.rssMiB, tookMs: performance.now() - began };
}

const told = ({ cpuMs, rssMiB, tookMs }: Awaited<ReturnType<typeof reports>>) =>
  `${Math.round(cpuMs)} ms of CPU in ${(tookMs / 1000).toFixed(1)} s, ${Math.round(rssMiB)} MiB`;

test('a thousand reports a second are a few lines a second for each of fifty watchers', async (t) => {
  const alone = await reports();
  const sessions = await Promise.all(
    Array.from({ length: Math.ceil(WATCHERS / 8) }, async () => {
      const browser = new BrowserClient(running.url, running.env.SVC_PUBLIC_URL!);
      await browser.signIn({ email, password });
      return browser;
    }),
  );
  const watchers = await Promise.all(
    Array.from({ length: WATCHERS }, (_, index) =>
      watchLive(running.url, { cookie: sessions[index % sessions.length]!.cookie }),
    ),
  );
  for (const watcher of watchers) await watcher.line('start');
  const watched = await reports();
  await database.query("insert into outbox (topic, key) values ('live', 'settings last')");
  for (const watcher of watchers) await watcher.told('settings', 'last');
  const lines = watchers.map((watcher) => watcher.lines.filter(({ type }) => type === 'events').length);
  for (const count of lines) t.true(count <= watched.tookMs / TICK_MS + 5, `${count} lines`);
  t.true(lines.every((count) => count > 0));
  t.log(`without watchers: ${told(alone)}`);
  t.log(`with ${WATCHERS}: ${told(watched)}; ${lines[0]} lines each`);
  for (const watcher of watchers) await watcher.close();
});
