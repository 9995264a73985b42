import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { ServerClock } from '../../../../../agents/edge/lib/server-clock.ts';
import { ClockFile } from '../../../../../agents/edge/run/clock-file.ts';
import { START, TestClock } from '../../helpers/clock.ts';
import { temporaryFolder } from '../../helpers/folder.ts';
import { memoryLog } from '../../helpers/log.ts';

const AHEAD = 600_000;

function setUp(t: ExecutionContext) {
  const path = join(temporaryFolder(t), 'clock.json');
  const { log, lines } = memoryLog();
  const clock = new TestClock();
  /** A process of the agent on this machine. */
  const start = () => {
    const file = new ClockFile(path, log);
    const server = new ServerClock(clock, file.read());
    return { file, server, keep: () => file.keep(server.reading()) };
  };
  return { path, lines, clock, start };
}

test("an agent that starts without the console goes on with the console's clock as it was known", (t) => {
  const { clock, start } = setUp(t);
  t.is(start().server.offsetMs(), 0);
  const first = start();
  first.server.observe(BigInt(START + AHEAD));
  first.keep();
  clock.pass(3_600_000);
  // The monotonic clock of another boot.
  clock.monotonicMs = 7;
  const again = start();
  t.is(again.server.offsetMs(), AHEAD);
  clock.wallMs += 5000;
  t.is(again.server.offsetMs(), AHEAD - 5000);
  // What a message says of the time is better than what was known, and the first answer ends it.
  t.is(again.server.offsetMs(BigInt(clock.wallMs + 40)), 40);
  again.server.observe(BigInt(clock.wallMs - 10));
  t.is(again.server.offsetMs(), -10);
});

test("the console's time never falls behind what it was, also where this machine's clock was set back meanwhile", (t) => {
  const { clock, start } = setUp(t);
  const first = start();
  first.server.observe(BigInt(START + AHEAD));
  first.keep();
  clock.wallMs -= 1_000_000;
  t.is(clock.wallMs + start().server.offsetMs(), START + AHEAD);
});

test('the file is written when the difference is another or some time has passed, and not by who knows nothing', (t) => {
  const { path, clock, start } = setUp(t);
  start().keep();
  t.throws(() => readFileSync(path));
  const { server, keep } = start();
  const written = () => JSON.parse(readFileSync(path, 'utf8')) as object;
  server.observe(BigInt(START + AHEAD));
  keep();
  t.deepEqual(written(), { serverTimeMs: START + AHEAD, offsetMs: AHEAD });
  clock.pass(60_000);
  keep();
  t.deepEqual(written(), { serverTimeMs: START + AHEAD, offsetMs: AHEAD });
  clock.wallMs += 500;
  keep();
  t.deepEqual(written(), { serverTimeMs: START + AHEAD + 60_000, offsetMs: AHEAD - 500 });
  clock.pass(600_000);
  keep();
  t.deepEqual(written(), { serverTimeMs: START + AHEAD + 660_000, offsetMs: AHEAD - 500 });
});

test('a file that cannot be read or written costs nothing but what was known', (t) => {
  const { path, lines, start } = setUp(t);
  for (const text of [
    '',
    '{',
    'null',
    '[]',
    '{"serverTimeMs":"1","offsetMs":0}',
    '{"serverTimeMs":1,"offsetMs":1e20}',
  ]) {
    writeFileSync(path, text);
    t.is(start().server.offsetMs(), 0, text);
  }
  rmSync(path);
  mkdirSync(path);
  const { server, keep } = start();
  server.observe(BigInt(START + AHEAD));
  keep();
  keep();
  t.is(lines.filter((line) => line.includes('not stored')).length, 1);
});
