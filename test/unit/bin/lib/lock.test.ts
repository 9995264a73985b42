import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { isLocked, takeLock } from '../../../../bin/lib/lock.ts';
import { markOf } from '../../../../bin/lib/process-table.ts';
import { temporaryFolder } from '../../../helpers/temporary-folder.ts';

function lockFile(t: ExecutionContext): string {
  return join(temporaryFolder(t), 'launcher.lock');
}

test('a free lock is taken and given back', async (t) => {
  const file = lockFile(t);
  const lock = await takeLock(file, 'the demo');
  t.true(isLocked(file));
  lock.release();
  t.false(existsSync(file));
});

test('a lock held by a running process is refused with its id', async (t) => {
  const file = lockFile(t);
  const other = spawn('sleep', ['60']);
  t.teardown(() => other.kill());
  await once(other, 'spawn');
  writeFileSync(file, JSON.stringify(markOf(other.pid!)));
  const error = await t.throwsAsync(takeLock(file, 'the demo', { waitMs: 0 }), { name: 'Refusal' });
  t.regex(error.message, new RegExp(`process ${other.pid}`));
});

test('a lock of a process that was killed is taken over', async (t) => {
  const file = lockFile(t);
  const other = spawn('sleep', ['60']);
  await once(other, 'spawn');
  writeFileSync(file, JSON.stringify(markOf(other.pid!)));
  other.kill('SIGKILL');
  await once(other, 'exit');
  await takeLock(file, 'the demo');
  t.is(JSON.parse(readFileSync(file, 'utf8')).pid, process.pid);
});

test('a process id that was given to somebody else does not hold the lock', async (t) => {
  const file = lockFile(t);
  writeFileSync(file, JSON.stringify({ pid: process.ppid, started: 'another boot:1' }));
  t.false(isLocked(file));
  await t.notThrowsAsync(takeLock(file, 'the demo', { waitMs: 0 }));
});

test('a holder that says it is stopping is waited for', async (t) => {
  const file = lockFile(t);
  const other = spawn('sleep', ['0.5']);
  await once(other, 'spawn');
  writeFileSync(file, JSON.stringify({ ...markOf(other.pid!), stopping: true }));
  await t.notThrowsAsync(takeLock(file, 'the demo', { waitMs: 0 }));
});
