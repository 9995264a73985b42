// What becomes of a Caddy that hangs and of a journal that kills it. Shell scripts stand for Caddy; they speak over the
// descriptor as agents/caddy/internal/lifesign does.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { CaddyGuard } from '../../../../agents/edge/supervise/caddy-guard.ts';
import { HangWatch } from '../../../../agents/edge/supervise/hang-watch.ts';
import { ManagedChild } from '../../../../agents/edge/supervise/managed-child.ts';
import { temporaryFolder, until } from '../helpers/folder.ts';
import { memoryLog } from '../helpers/log.ts';

const BEAT = String.raw`printf '\001' >&3`;
const CONFIG = String.raw`printf '\002' >&3`;
const BANS = String.raw`printf '\003' >&3`;
const READY = String.raw`printf '\004' >&3`;
/** Beats until it is killed. */
const SERVE = `while :; do ${BEAT}; sleep 0.05; done`;

interface World {
  folder: string;
  lines: string[];
  child: ManagedChild;
  starts(): number;
  journal(name: string): string;
  aside(name: string): string[];
}

/** A supervised script; `$STARTS` has a line for each start and the shell variable `n` their number. */
function supervise(t: ExecutionContext, script: string, seconds: { silence?: number; rest?: number } = {}): World {
  const folder = temporaryFolder(t);
  const { log, lines } = memoryLog();
  const journals = { config: join(folder, 'config.journal'), bans: join(folder, 'bans.journal') };
  for (const path of Object.values(journals)) {
    writeFileSync(path, 'newest');
    writeFileSync(`${path}.before`, 'the one before');
  }
  const starts = join(folder, 'starts');
  writeFileSync(starts, '');
  const hangWatch = new HangWatch({
    silenceSeconds: seconds.silence ?? 1_000_000,
    restSeconds: seconds.rest ?? 1_000_000,
    dumpSeconds: 10,
    secondMs: 20,
    log,
  });
  const guard = new CaddyGuard({
    journals,
    withoutAgent: async (work) => {
      lines.push('agent away');
      work();
    },
    silenceSeconds: 0,
    log,
    hangWatch,
  });
  const child = new ManagedChild({
    name: 'caddy',
    command: '/bin/sh',
    args: ['-c', `echo >> ${starts}; n=$(wc -l < ${starts}); ${script}`],
    env: { PATH: process.env.PATH },
    ipc: false,
    minDelayMs: 5,
    maxDelayMs: 20,
    graceMs: 1000,
    log,
    changed: () => undefined,
    guard,
  });
  t.teardown(() => child.stop());
  void child.start();
  return {
    folder,
    lines,
    child,
    starts: () => readFileSync(starts, 'utf8').length,
    journal: (name) => readFileSync(join(folder, `${name}.journal`), 'utf8'),
    aside: (name) => readdirSync(folder).filter((file) => file.startsWith(`${name}.journal.fatal-`)),
  };
}

for (const [name, step, other] of [
  ['config', CONFIG, 'bans'],
  ['bans', BANS, 'config'],
] as const) {
  test(`two deaths while the ${name} journal is read set it aside for the one before`, async (t) => {
    const world = supervise(t, `${step}; [ $n -le 2 ] && exit 2; ${READY}; ${SERVE}`);
    await until(t, 'the third start', () => world.starts() === 3);
    t.is(world.journal(name), 'the one before');
    t.is(world.journal(other), 'newest');
    t.is(readFileSync(join(world.folder, world.aside(name)[0]!), 'utf8'), 'newest');
    t.is(world.lines.filter((line) => line === 'agent away').length, 1);
  });
}

test('without a journal before, one that kills is set aside and everything is fetched again', async (t) => {
  const world = supervise(t, `${CONFIG}; [ $n -le 4 ] && exit 2; ${READY}; ${SERVE}`);
  await until(t, 'the fifth start', () => world.starts() === 5);
  t.false(existsSync(join(world.folder, 'config.journal')));
  t.is(world.aside('config').length, 1, 'only the last one is kept');
  t.is(readFileSync(join(world.folder, world.aside('config')[0]!), 'utf8'), 'the one before');
});

for (const [title, script] of [
  [
    'an address in use, after the journals were read',
    `${CONFIG}; ${BANS}; ${READY}; echo 'bind: address already in use' >&3; exit 1`,
  ],
  ['no memory', `${CONFIG}; echo 'fatal error: runtime: out of memory' >&3; exit 2`],
  ['the kernel that needed its memory', `${CONFIG}; kill -9 $$`],
  ['something before any journal', 'exit 1'],
] as const) {
  test(`a death of ${title} counts against no journal`, async (t) => {
    const world = supervise(t, script);
    await until(t, 'some starts', () => world.starts() >= 6);
    await world.child.stop();
    for (const name of ['config', 'bans']) {
      t.is(world.journal(name), 'newest');
      t.deepEqual(world.aside(name), []);
    }
  });
}

test('one death and a start that read the journals is no second death', async (t) => {
  const world = supervise(t, `${CONFIG}; [ $((n % 2)) = 1 ] && exit 2; ${READY}; exit 1`);
  await until(t, 'some starts', () => world.starts() >= 8);
  await world.child.stop();
  t.is(world.journal('config'), 'newest');
});

test('a process that stands still is replaced by one that serves, once in a while at most', async (t) => {
  const world = supervise(t, `${READY}; ${BEAT}; [ $n -le 2 ] && kill -STOP $$; ${SERVE}`, { silence: 150, rest: 200 });
  await until(t, 'the third start', () => world.starts() === 3);
  const replaced = world.lines.filter((line) => line.includes('is unresponsive'));
  t.is(replaced.length, 2);
});

test('a process that ignores what it is told is killed', async (t) => {
  const world = supervise(t, `trap '' ABRT; ${READY}; ${BEAT}; [ $n = 1 ] && while :; do sleep 0.05; done; ${SERVE}`, {
    silence: 150,
  });
  await until(t, 'the second start', () => world.starts() === 2);
  t.true(world.lines.some((line) => line.includes('SIGKILL')));
});

test('within the time of rest a process that stands still is left alone', async (t) => {
  const world = supervise(t, `${READY}; ${BEAT}; kill -STOP $$`, { silence: 10 });
  await until(t, 'the replacement', () => world.starts() === 2);
  const { mark } = world.child;
  await new Promise((resolve) => setTimeout(resolve, 500));
  t.deepEqual(world.child.mark, mark);
  process.kill(mark!.pid, 'SIGKILL');
});

test('a process that gives no signs at all, because it knows none, is left alone', async (t) => {
  const world = supervise(t, 'exec sleep 600', { silence: 5 });
  await until(t, 'the start', () => world.child.mark !== undefined);
  const { mark } = world.child;
  await new Promise((resolve) => setTimeout(resolve, 500));
  t.deepEqual(world.child.mark, mark);
});
