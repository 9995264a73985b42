// A folder or file has one holder at a time, the lock ends with its process alone, and other users cannot take it away.

import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, statSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { lockFile, lockFolder } from '../../../../agents/kit/locks.ts';
import { temporaryFolder } from '../helpers/folder.ts';

const MODULE = join(import.meta.dirname, '../../../../agents/kit/locks.ts');

/** A process that takes the lock of a folder, starts a child, and says so. */
async function holder(t: ExecutionContext, folder: string): Promise<{ child: ChildProcess; heir: number }> {
  const script = `import { spawn } from 'node:child_process';
    import { lockFolder } from ${JSON.stringify(MODULE)};
    if (!lockFolder(process.argv[1])) process.exit(1);
    const heir = spawn('sleep', ['600'], { stdio: 'ignore', detached: true });
    console.log(heir.pid);
    setInterval(() => undefined, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script, folder], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const heir = await new Promise<number>((resolve, reject) => {
    child.stdout!.once('data', (text) => resolve(Number(text)));
    child.once('exit', (code) => reject(new Error(`ended with ${code}`)));
  });
  t.teardown(() => {
    child.kill('SIGKILL');
    process.kill(heir, 'SIGKILL');
  });
  return { child, heir };
}

test('a folder is locked once, by whatever path it is named, until it is released', (t) => {
  const folder = temporaryFolder(t);
  const link = join(temporaryFolder(t), 'link');
  symlinkSync(folder, link);
  const lock = lockFolder(folder);
  t.truthy(lock);
  t.is(lockFolder(folder), undefined);
  t.is(lockFolder(link), undefined);
  lock!.release();
  const again = lockFolder(link);
  t.truthy(again);
  again!.release();
});

test('a file is made, locked once, and can be removed with its lock', (t) => {
  const path = join(temporaryFolder(t), 'a.lock');
  const lock = lockFile(path);
  t.is(statSync(path).mode & 0o777, 0o600);
  t.is(lockFile(path), undefined);
  lock!.remove();
  t.false(existsSync(path));
  lockFile(path)!.release();
  t.true(existsSync(path));
  lockFile(path)!.release();
});

test('a lock ends with its process, although a child of it lives on', async (t) => {
  const folder = temporaryFolder(t);
  const { child } = await holder(t, folder);
  t.is(lockFolder(folder), undefined);
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await gone;
  const lock = lockFolder(folder);
  t.truthy(lock);
  lock!.release();
});

test('a folder that is not there is an error', (t) => {
  t.throws(() => lockFolder(join(temporaryFolder(t), 'none')), { code: 'ENOENT' });
});

test('no name that any local user can bind is in the way', async (t) => {
  const folder = join(temporaryFolder(t), 'state');
  mkdirSync(folder, { mode: 0o700 });
  const { dev, ino } = statSync(folder);
  for (const kind of ['run', 'supervise']) {
    const squatter = createServer();
    await new Promise<void>((resolve, reject) => {
      squatter.once('error', reject).listen({ path: `\0svc-lock/${kind}/${dev}:${ino}` }, resolve);
    });
    t.teardown(() => squatter.close());
  }
  const lock = lockFolder(folder);
  t.truthy(lock);
  lock!.release();
});
