import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { create, toBinary } from '@bufbuild/protobuf';
import test from 'ava';
import fc from 'fast-check';
import {
  batchFileName,
  cutBatches,
  decodeBatch,
  encodeBatches,
  MAX_BATCH_BYTES,
  readBatchFileName,
} from '../../../../../agents/edge/stats/batch-file.ts';
import { openSpoolFolder } from '../../../../../agents/edge/stats/spool-files.ts';
import { LATENCY_BOUNDS_MS } from '../../../../../contract/latency-buckets.ts';
import { ReportStatsRequestSchema, SiteMinuteSchema } from '../../../../../proto/gen/svc/node/v1/node_pb.js';
import { temporaryFolder } from '../../helpers/folder.ts';
import { drain, Killed, ModelConsole, ModelDataPlane, ModelFiles, NOW, openSpool, send } from './model.ts';

test('a node that drains each minute is complete until the minute of the last drain', async (t) => {
  const [files, dataPlane, target] = [new ModelFiles(), new ModelDataPlane(), new ModelConsole()];
  const spool = openSpool(files);
  dataPlane.count(NOW, 3);
  await drain(spool, dataPlane);
  send(spool, target);
  t.deepEqual([target.stored.length, target.cursor], [3, 1n]);
  t.true(target.watermark >= NOW);
  const before = target.cursor;
  await drain(spool, dataPlane);
  send(spool, target);
  t.is(target.cursor, before + 1n, 'a minute without requests is told too');
  t.is(spool.waiting, 0n);
  t.is(files.list().length, 2, 'only the state and the newest file stay');
});

test('what is not sent yet says with its last batch only how far it is complete', async (t) => {
  const [dataPlane, spool] = [new ModelDataPlane(), openSpool(new ModelFiles())];
  dataPlane.count(NOW, 2500);
  await drain(spool, dataPlane);
  spool.confirm(0n);
  const told = [];
  for (let next = spool.next(); next; next = spool.next()) {
    told.push([next.batch.minutes.length, next.batch.completeUntil > 0n, next.batch.firstHeld]);
    spool.acknowledge(next.batch.sequence, next.batch.sequence);
  }
  t.deepEqual(told, [
    [1000, false, 1n],
    [1000, false, 1n],
    [500, true, 1n],
  ]);
});

test('a batch is at most 1,000 rows and 256 KiB', (t) => {
  const counts = Array.from({ length: 200 }, (_, index) => ({ name: `blocked.reason-${index}`, count: 1_000_000n }));
  const row = (siteId: string) => create(SiteMinuteSchema, { siteId, minute: BigInt(NOW), requests: 1n, counts });
  const batches = cutBatches(
    Array.from({ length: 300 }, (_, index) => row(`s${index}`)),
    [],
  );
  t.is(batches.flatMap(({ minutes }) => minutes).length, 300);
  for (const { minutes } of batches) {
    const size = toBinary(ReportStatsRequestSchema, create(ReportStatsRequestSchema, { minutes })).length;
    t.true(size <= MAX_BATCH_BYTES, `${size}`);
  }
});

test('the spool of a node with 50 active sites holds 24 hours in 64 MiB', (t) => {
  let seed = 1;
  const random = (limit: number): number => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed % limit;
  };
  const site = (index: number) => `01k9${String(index).padStart(22, 'a')}`;
  // A drain in the middle of a minute has two rows of each site.
  const rows = Array.from({ length: 100 }, (_, index) =>
    create(SiteMinuteSchema, {
      siteId: site(index % 50),
      minute: BigInt(NOW + 60 * Math.floor(index / 50)),
      requests: BigInt(random(1e6)),
      bytesSent: BigInt(random(2e9)) * 100n,
      bytesReceived: BigInt(random(2e9)),
      statuses: [200, 204, 206, 301, 302, 304, 400, 403, 404, 429, 499, 500, 502, 503].map((code) => ({
        code,
        count: BigInt(random(1e6)),
      })),
      counts: Array.from({ length: 20 }, (_, at) => ({ name: `blocked.rule-${at}`, count: BigInt(random(1e5)) })),
      latency: [...LATENCY_BOUNDS_MS, 0].map(() => BigInt(random(1e6))),
    }),
  );
  const bytes = encodeBatches(cutBatches(rows, [])).length;
  const day = 1440 * Math.ceil(bytes / 4096) * 4096;
  t.log(`${bytes} bytes a drain, ${(day / 2 ** 20).toFixed(1)} MiB a day`);
  t.true(day <= 64 * 2 ** 20);
});

test('a spool beyond its limit gives up the oldest first, says so, and holds the watermark for 24 hours', async (t) => {
  let now = NOW;
  const [files, dataPlane, target] = [new ModelFiles(), new ModelDataPlane(), new ModelConsole()];
  const spool = openSpool(files, { maxFiles: 4 }, () => now);
  for (let minute = 0; minute < 10; minute++) {
    dataPlane.count(NOW + minute * 60, 1);
    await drain(spool, dataPlane);
  }
  send(spool, target);
  t.deepEqual(target.stored, ['s6', 's7', 's8', 's9']);
  const missing = dataPlane.counted.filter(({ id }) => !target.stored.includes(id));
  for (const { minute } of missing) {
    t.true(
      target.gaps.some(([from, to]) => from <= minute && minute + 60 <= to),
      `${minute}`,
    );
  }
  t.is(target.watermark, NOW);
  now += 24 * 3600 - 1;
  spool.idle(now);
  send(spool, target);
  t.is(target.watermark, NOW);
  // A restart in between changes nothing.
  const again = openSpool(files, {}, () => now);
  again.confirm(target.cursor);
  again.idle(now);
  send(again, target);
  t.is(target.watermark, NOW);
  now += 1;
  again.idle(now);
  send(again, target);
  t.is(target.watermark, now);
});

test('what is readable of a damaged file is sent, the rest is a gap, and nothing crashes', async (t) => {
  const [files, dataPlane, target] = [new ModelFiles(), new ModelDataPlane(), new ModelConsole()];
  dataPlane.count(NOW, 3000);
  await drain(openSpool(files), dataPlane);
  const [name, bytes] = [...files.content].find(([file]) => file !== 'state.json')!;
  bytes[Math.floor(bytes.length / 2)]! ^= 1;
  files.content.set('something.else', Buffer.from('x'));
  files.content.set('9-3.0-0.0.0.batches', Buffer.from('x'));
  const spool = openSpool(files);
  send(spool, target);
  t.deepEqual([target.stored.length, target.cursor], [2000, 3n], name);
  t.deepEqual(target.gaps, [[NOW, NOW + 60]]);
  t.deepEqual(files.list().sort(), [name, 'state.json'].sort());
});

test('a file that somebody took away is a gap between its neighbours', async (t) => {
  const [files, dataPlane, target] = [new ModelFiles(), new ModelDataPlane(), new ModelConsole()];
  const spool = openSpool(files);
  for (let minute = 0; minute < 3; minute++) {
    dataPlane.count(NOW + minute * 60, 1);
    await drain(spool, dataPlane);
  }
  files.content.delete(files.list().find((name) => name.startsWith('2-'))!);
  send(openSpool(files), target);
  t.deepEqual([target.stored, target.cursor], [['s0', 's2'], 3n]);
  t.deepEqual(target.gaps, [[NOW + 60, NOW + 120]]);
});

test('any bytes in the folder are read without an error', (t) => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), fc.uint8Array({ maxLength: 200 }), (content, state) => {
      decodeBatch(content, 0);
      decodeBatch(content, 3);
      const files = new ModelFiles();
      files.content.set('state.json', state);
      files.content.set(`1-2.${NOW}-${NOW + 60}.${NOW}.7.batches`, content);
      const target = new ModelConsole();
      const spool = openSpool(files);
      t.is(spool.drained, 7n);
      send(spool, target);
      t.is(target.cursor, 2n);
    }),
  );
});

test('the name of a file says what is in it', (t) => {
  const file = { first: 3n, last: 5n, from: 60, to: 120, completeUntil: 180, drained: 2n ** 64n - 1n };
  const name = batchFileName(file);
  t.deepEqual(readBatchFileName(name), { name, ...file });
  for (const other of ['', 'state.json', `${name}.tmp`, '0-1.0-0.0.0.batches', '5-4.0-0.0.0.batches'])
    t.is(readBatchFileName(other), undefined, other);
});

test('a spool of another enrolment is discarded, its batches never move', (t) => {
  const folder = join(temporaryFolder(t), 'stats');
  const before = openSpoolFolder(folder, 'node-1');
  before.files.write('state.json', '{}');
  t.deepEqual(before.discarded, []);
  const after = openSpoolFolder(folder, '../node 2');
  t.deepEqual(after.discarded, ['enrolment-node-1']);
  t.deepEqual(after.files.list(), []);
  after.files.write('state.json', '{}');
  const [own] = readdirSync(folder);
  t.is(statSync(join(folder, own!, 'state.json')).mode & 0o777, 0o600);
  t.is(statSync(join(folder, own!)).mode & 0o777, 0o700);
});

test('a console that was put back gets what is still held, and learns from the first number that the rest will not come', async (t) => {
  const [files, dataPlane] = [new ModelFiles(), new ModelDataPlane()];
  let target = new ModelConsole();
  const spool = openSpool(files);
  const count = async (minute: number): Promise<void> => {
    dataPlane.count(NOW + minute * 60, 1);
    await drain(spool, dataPlane);
    send(spool, target);
  };
  await count(0);
  const backup = target.backup();
  await count(1);
  await count(2);
  target = backup;
  await count(3);
  t.deepEqual(target.stored, ['s0', 's3']);
  t.deepEqual(target.skipped, [[1n, 4n]]);
  t.is(target.cursor, 4n);
});

test('a spool that was lost numbers what it counts behind what the console has', async (t) => {
  const [dataPlane, target] = [new ModelDataPlane(), new ModelConsole()];
  const before = openSpool(new ModelFiles());
  for (let minute = 0; minute < 5; minute++) {
    dataPlane.count(NOW + minute * 60, 1);
    await drain(before, dataPlane);
  }
  send(before, target);
  dataPlane.forget();
  // The console cannot be reached while the new spool counts, and the agent restarts.
  const files = new ModelFiles();
  dataPlane.count(NOW, 2);
  await drain(openSpool(files), dataPlane);
  dataPlane.count(NOW + 60, 2);
  await drain(openSpool(files), dataPlane);
  send(openSpool(files), target);
  t.is(new Set(target.stored).size, 9);
  t.is(target.stored.length, 9);
});

test('a spool put back to what it was while the console was reached neither counts again nor loses what it counts since', async (t) => {
  const [files, dataPlane, target] = [new ModelFiles(), new ModelDataPlane(), new ModelConsole()];
  const count = async (times: number, spool = openSpool(files)): Promise<void> => {
    for (let drained = 0; drained < times; drained++) {
      dataPlane.count(NOW + dataPlane.counted.length * 60, 1);
      await drain(spool, dataPlane);
    }
  };
  const spool = openSpool(files);
  send(spool, target);
  await count(2, spool);
  const earlier = new Map(files.content);
  await count(3, spool);
  send(spool, target);
  t.is(target.stored.length, 5);
  files.content.clear();
  dataPlane.forget();
  for (const [name, bytes] of earlier) files.content.set(name, bytes);
  await count(8);
  send(openSpool(files), target);
  t.is(target.stored.length, 13);
  t.is(new Set(target.stored).size, 13);
});

const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('count' as const), rows: fc.integer({ min: 1, max: 1100 }) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('drain' as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('send' as const),
      batches: fc.integer({ min: 1, max: 5 }),
      lost: fc.boolean(),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('kill' as const),
      steps: fc.integer({ min: 0, max: 4 }),
      after: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restart' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('damage' as const), at: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('backup' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restore' as const) }) },
);

test('killed at any step, full, damaged, answered late or by a console put back: a count is stored once or in a gap that was told', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), fc.boolean(), async (steps, small) => {
      const [files, dataPlane] = [new ModelFiles(), new ModelDataPlane()];
      let target = new ModelConsole();
      let backup = target.backup();
      let minute = NOW;
      const open = () => openSpool(files, small ? { maxFiles: 4 } : {});
      let spool = open();
      /** What only a console that was put back has lost: it saw the numbers that were passed over. */
      const lostByRestore = new Set<string>();
      const gapsBefore: [number, number][] = [];
      const attempt = async (work: () => void | Promise<void>): Promise<void> => {
        try {
          await work();
        } catch (error) {
          if (!(error instanceof Killed)) throw error;
          files.killIn = undefined;
          spool = open();
        }
      };
      for (const action of steps) {
        if (action.do === 'count') {
          minute += 60;
          dataPlane.count(minute, action.rows);
        } else if (action.do === 'drain') await attempt(() => drain(spool, dataPlane));
        else if (action.do === 'send') await attempt(() => void send(spool, target, action.batches, action.lost));
        else if (action.do === 'kill') files.killIn = { steps: action.steps, after: action.after };
        else if (action.do === 'restart') {
          files.killIn = undefined;
          spool = open();
        } else if (action.do === 'damage') {
          const names = files.list().filter((name) => name !== 'state.json');
          const bytes = files.content.get(names[action.at % names.length] ?? '');
          if (bytes) bytes[action.at % bytes.length]! ^= 1;
          files.killIn = undefined;
          spool = open();
        } else if (action.do === 'backup') backup = target.backup();
        else {
          for (const id of target.stored) lostByRestore.add(id);
          gapsBefore.push(...target.gaps);
          target = backup.backup();
        }
      }
      files.killIn = undefined;
      minute += 60;
      dataPlane.count(minute, 1);
      // What a process took and did not store comes first.
      for (let times = 0; times < 2; times++) await drain(spool, dataPlane);
      for (let round = 0; round < 5 && spool.waiting + (spool.unconfirmed ? 1n : 0n) > 0n; round++) send(spool, target);
      t.is(new Set(target.stored).size, target.stored.length, 'nothing counts twice');
      const stored = new Set(target.stored);
      for (const { id, minute } of dataPlane.counted) {
        if (stored.has(id)) continue;
        if (lostByRestore.has(id) && target.skipped.length > 0) continue;
        const told = target.skipped.length > 0 ? [...target.gaps, ...gapsBefore] : target.gaps;
        if (!told.some(([from, to]) => from <= minute && minute + 60 <= to)) {
          throw new Error(`${id} of ${minute - NOW} is nowhere`);
        }
      }
    }),
    { numRuns: 60 },
  );
});
