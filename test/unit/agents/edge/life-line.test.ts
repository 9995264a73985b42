import { PassThrough } from 'node:stream';
import test from 'ava';
import { LifeLine } from '../../../../agents/edge/supervise/life-line.ts';

function open() {
  const stream = new PassThrough();
  const written: string[] = [];
  return { stream, written, line: new LifeLine(stream, (text) => written.push(text)) };
}

test('signs, steps and text of one stream are told apart, whatever the chunks', async (t) => {
  const { stream, written, line } = open();
  t.is(line.step, 'starting');
  stream.write(Buffer.from([1, 2, 1]));
  stream.write(Buffer.from('pan\u0001ic: the end\n'));
  await new Promise((resolve) => setImmediate(resolve));
  t.is(line.step, 'reading config');
  t.is(line.signs, 3);
  stream.write(Buffer.from([3]));
  stream.end(Buffer.from([4]));
  stream.destroy();
  await line.closed;
  t.is(written.join(''), 'panic: the end\n');
  t.false(line.ranOutOfMemory);
});

test('of what a dying process prints, 256 KiB are passed on', async (t) => {
  const { stream, written } = open();
  for (let chunk = 0; chunk < 100; chunk++) stream.write(Buffer.alloc(10_000, 'goroutine '));
  stream.end('the last line');
  await new Promise((resolve) => stream.once('close', resolve));
  const text = written.join('');
  t.true(text.startsWith('goroutine goroutine'));
  t.true(text.length < 256 * 1024 + 100);
  t.true(text.endsWith('… the rest is omitted\n'));
});

test('want of memory is recognised in what the runtime says', async (t) => {
  for (const text of ['fatal error: runtime: out of memory', 'runtime: mmap: cannot allocate memory']) {
    const { stream, line } = open();
    stream.end(text);
    stream.resume();
    await line.closed;
    t.true(line.ranOutOfMemory, text);
  }
});
