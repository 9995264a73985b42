// What a node says of bans that a restore of its console took from it.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import test, { type ExecutionContext } from 'ava';
import { type BanRow, BanStore } from '../../../../agents/edge/bans/ban-store.ts';
import { LostBanReport } from '../../../../agents/edge/bans/lost-ban-report.ts';
import { lostReport, lostRows, MAX_NAMED } from '../../../../agents/edge/bans/lost-bans.ts';
import {
  type Ban,
  BanPositionSchema,
  BanSchema,
  BanSource,
  type ReportLostBansRequest,
} from '../../../../proto/gen/svc/node/v1/bans_pb.js';
import { START, TestClock } from '../helpers/clock.ts';
import { temporaryFolder, until } from '../helpers/folder.ts';
import { memoryLog } from '../helpers/log.ts';

const MINUTE = 60_000;
const AHEAD_MS = 5 * MINUTE;

function ban(id: string, minutes = 60, extra: Partial<Ban> = {}): Ban {
  return create(BanSchema, {
    id,
    cidr: '192.0.2.1/32',
    source: BanSource.MANUAL,
    createdAtMs: BigInt(START),
    expiresAtMs: BigInt(START + minutes * MINUTE),
    reason: 'abuse',
    ...(extra as object),
  });
}

const ids = (bans: readonly { id: string }[]) => bans.map(({ id }) => id);

/** A node with these bans of epoch 1, and a console that takes what it reports. */
function setUp(t: ExecutionContext, held: readonly Ban[]) {
  const folder = temporaryFolder(t);
  const path = join(folder, 'lost-bans.json');
  const clock = new TestClock();
  const { log, lines } = memoryLog();
  const store = BanStore.open({ path: join(folder, 'bans.journal'), nodeId: 'n', clusterId: 'c', log, clock });
  t.teardown(() => store.close());
  store.apply(create(BanPositionSchema, { epoch: 1n, sequence: 1n }), store.accept(held, 0).rows, []);
  const taken: ReportLostBansRequest[] = [];
  const kept = (bans: readonly Ban[]) => new Map(store.accept(bans, 0).rows.map((row) => [row.id, row]));
  const console = { answer: (): void => undefined, reached: true, calls: 0 };
  const start = (clusterId = 'c') => {
    const report = new LostBanReport({
      path,
      clusterId,
      store,
      clock: { offsetMs: () => AHEAD_MS },
      log,
      channel: () =>
        console.reached
          ? {
              reportLostBans: async (request) => {
                console.calls++;
                console.answer();
                taken.push(request);
              },
            }
          : undefined,
    });
    t.teardown(() => report.stop());
    return report;
  };
  return { path, clock, lines, taken, kept, console, start };
}

test('lost is what the new history lacks, or ends earlier; what has ended is nothing', (t) => {
  const { clock, kept, start, taken } = setUp(t, [ban('stays'), ban('made'), ban('renewed', 120), ban('ends', 1)]);
  clock.pass(2 * MINUTE);
  const report = start();
  report.note(2n, kept([ban('stays'), ban('renewed', 60), ban('other')]));
  return until(t, 'the report', () => taken.length === 1).then(() => {
    t.is(taken[0]!.epoch, 2n);
    t.deepEqual(ids(taken[0]!.bans).sort(), ['made', 'renewed']);
    t.is(taken[0]!.unnamed, 0n);
    const made = taken[0]!.bans.find(({ id }) => id === 'made')!;
    t.like(made, { cidr: '192.0.2.1/32', reason: 'abuse', source: BanSource.MANUAL });
    t.is(Number(made.expiresAtMs), START + 60 * MINUTE + AHEAD_MS, "by the console's clock");
  });
});

test('clocks that differ a little make no ban shorter', (t) => {
  const row = (id: string, expiresAt: number) => ({ id, expiresAt }) as BanRow;
  t.deepEqual(lostRows([row('a', 100_000)], new Map([['a', { expiresAt: 50_000 }]])), []);
  t.is(lostRows([row('a', 100_000)], new Map([['a', { expiresAt: 30_000 }]])).length, 1);
});

test('a thousand are named, those of people and the newest first, and the others counted', (t) => {
  const auto = Array.from({ length: 700 }, (_, at) =>
    ban(`auto-${at}`, 60, { source: BanSource.AUTO, createdAtMs: BigInt(START + at) }),
  );
  const manual = Array.from({ length: 700 }, (_, at) => ban(`manual-${at}`, 60, { createdAtMs: BigInt(START - at) }));
  const report = lostReport(2n, [...auto, ...manual], new Map());
  t.is(report.bans.length, MAX_NAMED);
  t.is(report.unnamed, 400n);
  t.is(report.bans[0]!.id, 'manual-0');
  t.is(report.bans[700]!.id, 'auto-699');
});

test('a report that no console took is part of that of the next history', (t) => {
  const first = lostReport(2n, [ban('a'), ban('back'), ban('again')], new Map());
  const kept = new Map([['back', {}]]);
  t.deepEqual(ids(lostReport(3n, [ban('again'), ban('new')], kept, first).bans).sort(), ['a', 'again', 'new']);
  // The same history once more: what was found before counts no more.
  t.deepEqual(ids(lostReport(2n, [ban('a')], new Map(), first).bans), ['a']);
});

test('what was found is on disk before anything is replaced, and said by the process after one that was killed', async (t) => {
  const { path, kept, console, start, taken } = setUp(t, [ban('made')]);
  console.reached = false;
  start().note(2n, kept([]));
  t.true(existsSync(path));
  t.is(taken.length, 0);
  // Killed here, before or after the bans were replaced; the next one finds nothing more to compare.
  console.reached = true;
  start().onConnected();
  await until(t, 'the report', () => taken.length === 1);
  t.deepEqual(ids(taken[0]!.bans), ['made']);
  await until(t, 'the file to be gone', () => !existsSync(path));
  start().onConnected();
  t.is(taken.length, 1);
});

test('a console that refuses is asked again, and one that knows no such report only after the next connection', async (t) => {
  const { path, kept, console, start, taken } = setUp(t, [ban('made')]);
  console.answer = () => {
    if (console.calls === 1) throw new ConnectError('not of the present history', Code.FailedPrecondition);
  };
  const report = start();
  report.note(2n, kept([]));
  await until(t, 'the first try', () => console.calls === 1);
  report.onConnected();
  await until(t, 'the second try', () => taken.length === 1);

  console.answer = () => {
    throw new ConnectError('no such method', Code.Unimplemented);
  };
  report.note(3n, kept([]));
  await until(t, 'an older console', () => console.calls === 3);
  t.true(existsSync(path));
  console.answer = () => undefined;
  report.onConnected();
  await until(t, 'a newer console', () => taken.length === 2);
});

test('a file of another cluster, or that cannot be read, says nothing', async (t) => {
  const { path, kept, console, start, taken, lines } = setUp(t, [ban('made')]);
  console.reached = false;
  start().note(2n, kept([]));
  console.reached = true;
  const stored = readFileSync(path);
  start('another').onConnected();
  t.false(existsSync(path));
  writeFileSync(path, stored.subarray(0, stored.length / 2));
  start().onConnected();
  t.false(existsSync(path));
  t.true(lines.some((line) => line.includes('not read')));
  t.is(taken.length, 0);
});
