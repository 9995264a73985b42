import { readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { frameRecord, Journal } from '../../../../agents/kit/journal.ts';
import { setJournalAside } from '../../../../agents/kit/journal-before.ts';
import { FailingDisk } from '../helpers/failing-disk.ts';
import { temporaryFolder } from '../helpers/folder.ts';
import { onFullDisk } from '../helpers/full-disk.ts';
import { memoryLog } from '../helpers/log.ts';

const HEADER = Buffer.from('header of the file');

function open(
  path: string,
  extra: { onRecord?: (payload: Buffer, offset: number) => boolean; keepsBefore?: boolean } = {},
) {
  const records: string[] = [];
  const { log, lines } = memoryLog();
  const journal = Journal.open({
    path,
    log,
    header: HEADER,
    accept: (payload) => payload.equals(HEADER),
    onRecord:
      extra.onRecord ??
      ((payload) => {
        records.push(payload.toString());
        return true;
      }),
    keepsBefore: extra.keepsBefore ?? false,
  });
  return { journal, records, lines };
}

async function written(t: ExecutionContext, texts: string[]): Promise<string> {
  const path = join(temporaryFolder(t), 'x.journal');
  const { journal } = open(path);
  for (const text of texts) journal.append(Buffer.from(text));
  await journal.close();
  return path;
}

async function reread(path: string): Promise<{ records: string[]; lines: string[]; damage: string }> {
  const { journal, records, lines } = open(path);
  const { damage } = journal;
  await journal.close();
  return { records, lines, damage };
}

test('records come back in order after a restart', async (t) => {
  const path = await written(t, ['one', 'two', 'three']);
  t.deepEqual((await reread(path)).records, ['one', 'two', 'three']);
});

test('the payload of a record is found again at the offset that append returned', async (t) => {
  const { journal } = open(join(temporaryFolder(t), 'x.journal'));
  journal.append(Buffer.from('one'));
  const offset = journal.append(Buffer.from('second'));
  t.is(journal.read(offset, 6).toString(), 'second');
  await journal.close();
});

test('a file cut at any byte keeps every whole record before the cut and can be appended to', async (t) => {
  const texts = ['first', 'the second record', 'x'];
  const path = await written(t, texts);
  const whole = readFileSync(path);
  const ends = [8 + HEADER.length];
  for (const text of texts) ends.push(ends.at(-1)! + 8 + text.length);
  for (let length = ends[0]!; length < whole.length; length++) {
    writeFileSync(path, whole.subarray(0, length));
    const expected = texts.filter((_, index) => ends[index + 1]! <= length);
    const { journal, records } = open(path);
    t.deepEqual(records, expected, `cut at ${length}`);
    journal.append(Buffer.from('after'));
    await journal.close();
    t.deepEqual((await reread(path)).records, [...expected, 'after'], `appended after a cut at ${length}`);
  }
});

test('a file cut inside its first record is set aside, an empty one starts anew', async (t) => {
  const path = await written(t, ['one']);
  truncateSync(path, 10);
  const { records, lines, damage } = await reread(path);
  t.deepEqual(records, []);
  t.not(damage, '');
  t.true(lines.some((line) => line.includes('set aside')));
  t.is(readdirSync(join(path, '..')).filter((name) => name.includes('.corrupt-')).length, 1);
  truncateSync(path, 0);
  t.is((await reread(path)).damage, '');
});

test('a changed byte anywhere loses no record before it and never yields a wrong one', async (t) => {
  const texts = ['first record', 'second record', 'third record'];
  const path = await written(t, texts);
  const whole = readFileSync(path);
  const first = 8 + HEADER.length;
  const size = 8 + texts[0]!.length;
  for (let at = first; at < whole.length; at++) {
    const changed = Buffer.from(whole);
    changed[at]! ^= 0x41;
    writeFileSync(path, changed);
    const hit = texts.findIndex(
      (_, index) => at < first + texts.slice(0, index + 1).reduce((sum, text) => sum + 8 + text.length, 0),
    );
    const { records } = await reread(path);
    t.deepEqual(records, texts.slice(0, hit), `byte ${at}`);
    t.true(size > 0);
  }
});

test('damage in the middle sets a copy aside and says so; damage at the end is only cut', async (t) => {
  const path = await written(t, ['first record', 'second record', 'third record']);
  const whole = readFileSync(path);
  const changed = Buffer.from(whole);
  changed[whole.indexOf('second')]! ^= 1;
  writeFileSync(path, changed);
  const middle = await reread(path);
  t.deepEqual(middle.records, ['first record']);
  t.not(middle.damage, '');
  const copies = readdirSync(join(path, '..')).filter((name) => name.includes('.corrupt-'));
  t.is(copies.length, 1);
  t.deepEqual(readFileSync(join(path, '..', copies[0]!)), changed);
  const tail = Buffer.from(whole);
  tail[whole.indexOf('third')]! ^= 1;
  writeFileSync(path, tail);
  const end = await reread(path);
  t.deepEqual(end.records, ['first record', 'second record']);
  t.is(end.damage, '');
});

test('zeros behind the last record, as a power cut leaves them, are cut', async (t) => {
  const path = await written(t, ['one']);
  writeFileSync(path, Buffer.concat([readFileSync(path), Buffer.alloc(4096)]));
  const { records, damage } = await reread(path);
  t.deepEqual(records, ['one']);
  t.is(damage, '');
});

test('a record that makes no sense ends the reading like damage', async (t) => {
  const path = await written(t, ['one', 'nonsense', 'three']);
  const seen: string[] = [];
  const { journal } = open(path, {
    onRecord: (payload) => {
      if (payload.toString() === 'nonsense') return false;
      seen.push(payload.toString());
      return true;
    },
  });
  t.not(journal.damage, '');
  await journal.close();
  t.deepEqual(seen, ['one']);
  t.deepEqual((await reread(path)).records, ['one']);
});

test('a file with another header is set aside untouched', async (t) => {
  const path = join(temporaryFolder(t), 'x.journal');
  const foreign = Buffer.concat([frameRecord(Buffer.from('other header')), frameRecord(Buffer.from('data'))]);
  writeFileSync(path, foreign);
  const { records, damage } = await reread(path);
  t.deepEqual(records, []);
  t.not(damage, '');
  const aside = readdirSync(join(path, '..')).find((name) => name.includes('.foreign-'))!;
  t.deepEqual(readFileSync(join(path, '..', aside)), foreign);
});

test('a rewrite keeps what was appended while it ran, at the offsets it announces', async (t) => {
  const path = join(temporaryFolder(t), 'x.journal');
  const { journal } = open(path);
  for (let index = 0; index < 100; index++) journal.append(Buffer.from(`old ${index}`));
  let late = 0;
  let shifted = 0;
  await journal.rewrite(
    async (draft) => {
      draft.append(Buffer.from('live'));
      late = journal.append(Buffer.from('late'));
      await new Promise((resolve) => setImmediate(resolve));
    },
    (tailFrom, shift) => {
      t.true(late >= tailFrom);
      shifted = late + shift;
    },
  );
  t.is(journal.read(shifted, 4).toString(), 'late');
  journal.append(Buffer.from('later'));
  await journal.close();
  t.deepEqual((await reread(path)).records, ['live', 'late', 'later']);
  t.deepEqual(readdirSync(join(path, '..')), ['x.journal']);
});

test('a rewrite that fails leaves the file as it was', async (t) => {
  const path = await written(t, ['one']);
  const { journal } = open(path);
  await t.throwsAsync(
    journal.rewrite(
      async (draft) => {
        draft.append(Buffer.from('half'));
        throw new Error('disk full');
      },
      () => t.fail('not swapped'),
    ),
    { message: 'disk full' },
  );
  await journal.close();
  t.deepEqual((await reread(path)).records, ['one']);
  t.deepEqual(readdirSync(join(path, '..')), ['x.journal']);
});

test('a leftover of an interrupted rewrite is ignored and removed', async (t) => {
  const path = await written(t, ['one']);
  writeFileSync(`${path}.next`, 'half a file');
  writeFileSync(`${path}.shadow`, 'half a snapshot');
  t.deepEqual((await reread(path)).records, ['one']);
  t.deepEqual(readdirSync(join(path, '..')), ['x.journal']);
});

test('property: any appends, a cut anywhere and more appends give a prefix followed by the later ones', async (t) => {
  const path = join(temporaryFolder(t), 'x.journal');
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.string({ minLength: 1, maxLength: 300 }), { maxLength: 12 }),
      fc.array(fc.string({ minLength: 1, maxLength: 300 }), { maxLength: 4 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      async (before, after, share) => {
        writeFileSync(path, '');
        const { journal } = open(path);
        for (const text of before) journal.append(Buffer.from(text));
        await journal.close();
        const whole = readFileSync(path);
        const least = 8 + HEADER.length;
        const cut = least + Math.floor((whole.length - least) * share);
        writeFileSync(path, whole.subarray(0, cut));
        const again = open(path);
        const kept = [...again.records];
        for (const text of after) again.journal.append(Buffer.from(text));
        await again.journal.close();
        const { records } = await reread(path);
        return (
          kept.every((text, index) => text === Buffer.from(before[index]!).toString()) &&
          JSON.stringify(records) === JSON.stringify([...kept, ...after.map((text) => Buffer.from(text).toString())])
        );
      },
    ),
    { numRuns: 150 },
  );
  t.pass();
});

test('the file before a rewrite is kept as it was, and takes the place of one that is set aside', async (t) => {
  const path = join(temporaryFolder(t), 'x.journal');
  const { journal } = open(path, { keepsBefore: true });
  const rewrite = (text: string, spoilt = false): Promise<void> =>
    journal.rewrite(
      async (draft) => {
        draft.append(Buffer.from(text));
      },
      () => undefined,
      spoilt,
    );
  journal.append(Buffer.from('one'));
  await rewrite('two');
  journal.append(Buffer.from('after'));
  t.deepEqual((await reread(`${path}.before`)).records, ['one'], 'what came after the rewrite is not in it');
  await rewrite('three', true);
  t.deepEqual((await reread(`${path}.before`)).records, ['one'], 'a spoilt file does not replace a good one');
  const draft = journal.startShadow();
  draft.append(Buffer.from('four'));
  await journal.replace(draft, () => undefined);
  t.deepEqual((await reread(`${path}.before`)).records, ['three']);
  await journal.close();
  t.true(setJournalAside(path).hadBefore);
  t.deepEqual((await reread(path)).records, ['three']);
  t.false(setJournalAside(path).hadBefore);
  t.is(readdirSync(join(path, '..')).filter((name) => name.includes('.fatal-')).length, 1);
});

const FULL_DISK = `
import { closeSync, fsyncSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs';
const { Journal } = await import(process.argv[1] + '/agents/kit/journal.ts');
const { createLog } = await import(process.argv[1] + '/agents/kit/log.ts');
const folder = process.argv[2];
const path = folder + '/x.journal';
const open = () => {
  const records = [];
  const offsets = [];
  const journal = Journal.open({
    path,
    log: createLog('info', {}, () => undefined),
    header: Buffer.from('header'),
    accept: (payload) => payload.toString() === 'header',
    onRecord: (payload, offset) => records.push(payload.toString()) && offsets.push([offset, payload.length]) > 0,
  });
  return { journal, records, offsets };
};
const append = (journal, text) => { try { journal.append(Buffer.from(text)); return true; } catch { return false; } };
const fill = () => {
  const fd = openSync(folder + '/ballast', 'w');
  for (const size of [65536, 4096, 1]) try { for (;;) if (writeSync(fd, Buffer.alloc(size)) < size) break; } catch {}
  closeSync(fd);
};
const room = () => rmSync(folder + '/ballast');
const results = [];

// No file yet, and no room for one.
fill();
let { journal } = open();
results.push(!append(journal, 'a'), journal.damage === '');
room();
results.push(append(journal, 'one'), append(journal, 'two'), append(journal, 'three' + 'x'.repeat(10000)));
await journal.close();
const whole = readFileSync(path);

// Damaged in its middle, and no room for another.
const changed = Buffer.from(whole);
changed[whole.indexOf('two')] ^= 1;
writeFileSync(path, changed);
fill();
for (let round = 0; round < 2; round++) {
  const again = open();
  results.push(again.records.join() === 'one', again.journal.damage !== '');
  results.push(!append(again.journal, 'later'), again.journal.read(...again.offsets[0]).toString() === 'one');
  await again.journal.close();
  results.push(readFileSync(path).equals(changed), readdirSync(folder).length === 2);
}
const last = open();
room();
results.push(append(last.journal, 'four'), last.journal.read(...last.offsets[0]).toString() === 'one');
await last.journal.close();
const aside = readdirSync(folder).filter((name) => name.includes('.corrupt-'));
results.push(aside.length === 1, readFileSync(folder + '/' + aside[0]).equals(changed));
const mended = open();
results.push(mended.records.join() === 'one,four', mended.journal.damage === '');
await mended.journal.close();

// Damaged, and written anew as a whole while records come.
writeFileSync(path, changed);
fill();
const anew = open();
room();
let shifted;
const rewriting = anew.journal.rewrite(
  async (draft) => { draft.append(Buffer.from('uno')); await new Promise((resolve) => setImmediate(resolve)); },
  (from, by) => { shifted = [from, by]; },
);
results.push(append(anew.journal, 'five'));
await rewriting;
await anew.journal.close();
const after = open();
results.push(after.records.join() === 'uno,five', after.journal.damage === '');
await after.journal.close();

// The same for a file that comes to be meanwhile.
rmSync(path);
fill();
const none = open();
room();
const writing = none.journal.rewrite(
  async (draft) => { draft.append(Buffer.from('eins')); await new Promise((resolve) => setImmediate(resolve)); },
  () => undefined,
);
results.push(append(none.journal, 'zwei'));
await writing;
await none.journal.close();
const born = open();
results.push(born.records.join() === 'eins,zwei', born.journal.damage === '');
await born.journal.close();

// A file of somebody else.
writeFileSync(path, Buffer.concat([whole.subarray(0, 8), Buffer.from('other!')]));
fill();
const foreign = open();
results.push(foreign.journal.damage !== '', !append(foreign.journal, 'x'));
room();
results.push(append(foreign.journal, 'x'));
await foreign.journal.close();
results.push(open().records.join() === 'x');
console.log(JSON.stringify(results));
`;

test('a full disk: a missing or damaged journal opens, keeps what is good, and is mended when there is room', (t) => {
  const results = onFullDisk(t, FULL_DISK);
  t.deepEqual(results, Array(results.length).fill(true));
  t.is(results.length, 33);
});

test.serial('a sync that failed is not forgotten: the records count as on disk only once they are', async (t) => {
  const failing = new FailingDisk(t);
  const path = join(failing.folder, 'x.journal');
  const { journal } = open(path);
  journal.append(Buffer.from('one'));
  await journal.sync();
  const offset = journal.append(Buffer.from('two'));
  // The next call is the sync.
  failing.failAfter(0, 'EIO');
  await t.throwsAsync(journal.sync());
  t.true(failing.disarm());
  t.true(journal.problem.includes('EIO'));
  t.is(journal.read(offset, 3).toString(), 'two', 'what the kernel may have dropped is in memory');
  const afterCrash = async () => (await reread(join(failing.crashed(), 'x.journal'))).records;
  t.deepEqual(await afterCrash(), ['one']);
  await journal.sync();
  t.deepEqual(await afterCrash(), ['one', 'two']);
  t.is(journal.problem, '');
  t.is(journal.read(offset, 3).toString(), 'two');
  await journal.close();
});
