// A database that does not answer for a while and then goes on: nothing begins after its answer, and what waits is
// bounded. STALL_SECONDS says for how long; the default is just longer than a call may take.
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import { startTestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { Api, type Body } from '../helpers/resources.ts';
import { privateServers } from '../helpers/servers.ts';

const STALL_MS = 1000 * Number(process.env.STALL_SECONDS ?? 12);
const EVERY_MS = 50;
const MOST_GROWTH = 128 * 2 ** 20;

/** The process and its children: the server's backends are what answers. */
function withChildren(pid: number): number[] {
  const children = readdirSync('/proc').filter((name) => {
    if (!/^[0-9]+$/.test(name)) return false;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1] === String(pid);
    } catch {
      return false;
    }
  });
  return [pid, ...children.map(Number)];
}

/** Some of the server's own processes end by themselves meanwhile. */
function signal(pids: readonly number[], name: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, name);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

test('bans asked for while the database stands still begin in their time or never, and memory stays flat', async (t) => {
  t.timeout(STALL_MS + 600_000);
  const own = await privateServers();
  t.teardown(() => own.stop());
  const running = await startTestConsole({ servers: own });
  t.teardown(() => running.stop());
  const api = new Api(running);
  const ban = (cidr: string) => ({ scope: 'platform', cidr, reason: 'abuse', durationSeconds: 3600 });
  await api.ok('POST', '/bans', ban('198.18.0.1'));
  const { client } = running;
  const once = (cidr: string, key?: string) =>
    client.request<Body>('POST', '/api/v1/bans', ban(cidr), {
      'x-api-key': client.accessKey,
      ...(key && { 'idempotency-key': key }),
    });
  const keyed = once('198.18.0.2', 'before');
  const stopped = withChildren(own.postgres.pid);
  const goOn = () => signal(stopped, 'SIGCONT');
  t.teardown(goOn);
  signal(stopped, 'SIGSTOP');

  const heap = process.memoryUsage().heapUsed;
  const until = performance.now() + STALL_MS;
  const asked: { cidr: string; answer: ReturnType<typeof once> }[] = [];
  let most = 0;
  // Below what one key may ask for.
  while (performance.now() < until && asked.length < 400) {
    const cidr = `198.19.${asked.length >> 8}.${asked.length & 255}`;
    asked.push({ cidr, answer: once(cidr) });
    await delay(Math.max(EVERY_MS, STALL_MS / 400));
    most = Math.max(most, process.memoryUsage().heapUsed);
  }
  await delay(Math.max(0, until - performance.now()));
  goOn();
  t.true(most - heap < MOST_GROWTH, `grew by ${most - heap} bytes`);

  const answers = await Promise.all(asked.map(async ({ cidr, answer }) => ({ cidr, ...(await answer) })));
  await eventually(async () => (await once('198.18.0.3')).status === 200, { what: 'a ban again', timeoutMs: 60_000 });
  // Whatever was begun has ended: transactions are bounded.
  await eventually(async () => {
    const { rows } = await api.sql.raw(
      "select 1 from pg_stat_activity where application_name = 'svc-bans' and state <> 'idle'",
    );
    return rows.length === 0;
  });
  const banned = new Set<string>(await api.sql('ban').pluck('cidr'));
  const refused = answers.filter(({ status, body }) => status === 503 && body.data.outcome !== 'unknown');
  t.true(refused.length > 0);
  t.deepEqual(
    refused.filter(({ cidr }) => banned.has(`${cidr}/32`)).map(({ cidr }) => cidr),
    [],
    'nothing begins after its answer',
  );
  for (const { cidr, status, body } of answers) {
    if (status === 200) t.true(banned.has(`${cidr}/32`));
    else t.is(body.code, 'SERVICE_UNAVAILABLE');
  }

  // A request whose outcome is unknown is settled by its key: once, whatever it came to.
  const first = await keyed;
  t.true([200, 503].includes(first.status));
  // A claim that the server had received may be made when it goes on, and is given back.
  const again = await eventually(async () => {
    const answer = await api.call('POST', '/bans', ban('198.18.0.2'), { 'idempotency-key': 'before' });
    return answer.status !== 409 && answer;
  });
  t.is(again.status, 200);
  t.is((await api.sql('ban').where({ cidr: '198.18.0.2/32' })).length, 1);
  t.deepEqual(
    (await api.audit(again.body.id)).map(({ action }) => action),
    ['ban.create'],
  );
});
